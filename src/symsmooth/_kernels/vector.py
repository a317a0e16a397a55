"""The low-level helpers: what a compiler does not make of a loop by itself.

- ``subtract_rows_32``, ``_40``, ``_56`` and ``_64``: a row minus a combination of rows, with the sums kept
  in registers;
- ``product_8``, ``_16`` and ``_24``: four rows of a matrix product, the same way;
- ``take_patch`` and ``add_patch``: a patch out of a picture and into it, line by line;
- ``above``, ``lowest_bit`` and ``count_bits``: which of up to 64 numbers are large, and how many.

They are portable LLVM code on eight floats at a time, which any processor's compiler splits as it can.
Each has a plain twin, the same as a loop: tests compare the two, and the twins serve where the helpers
cannot be built.  At 64 x 64 the first makes ``linalg.solve`` three times as fast, products of a few dozen
rows take half of BLAS's time, and patches a third of what pixel by pixel takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .base import jit

_LANES = 8
_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, _LANES)
_POINTER = _VECTOR.as_pointer()


class _Code:
    """Eight floats at a time: loads, stores and products in the function that is being built."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.arguments = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]

    def offset(self, base: Any, *steps: Any) -> Any:
        """Return base, so many elements further."""
        for step in steps:
            base = self.builder.gep(base, [self.whole(step)])
        return base

    def whole(self, value: Any) -> Any:
        """Return an integer constant, or what is one already."""
        return ir.Constant(_INT64, value) if isinstance(value, int) else value

    def times(self, a: Any, b: Any) -> Any:
        """Product of integers."""
        return self.builder.mul(self.whole(a), self.whole(b))

    def load(self, at: Any) -> Any:
        """Eight floats, aligned or not."""
        return self.builder.load(self.builder.bitcast(at, _POINTER), align=4)

    def store(self, vector: Any, at: Any) -> None:
        """Write eight floats."""
        self.builder.store(vector, self.builder.bitcast(at, _POINTER), align=4)

    def spread(self, scalar: Any) -> Any:
        """One float in all eight places."""
        undefined, zero = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(_INT32, 0)
        one = self.builder.insert_element(undefined, scalar, zero)
        everywhere = ir.Constant(ir.VectorType(_INT32, _LANES), [0] * _LANES)
        return self.builder.shuffle_vector(one, one, everywhere)

    def add_product(self, a: Any, b: Any, c: Any) -> Any:
        """Return a b + c, in one instruction if there is one."""
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        function = cgutils.get_or_insert_function(
            self.builder.module, kind, f"llvm.fmuladd.v{_LANES}f32"
        )
        return self.builder.call(function, [a, b, c])

    def registers(self, initial: Sequence[Any]) -> list[Any]:
        """Variables that the compiler keeps in registers."""
        places = []
        for vector in initial:
            places.append(cgutils.alloca_once(self.builder, _VECTOR))
            self.builder.store(vector, places[-1])
        return places

    def loop(self, count: Any) -> Any:
        """``with`` this, the body is repeated; gives the loop with its index."""
        return cgutils.for_range(self.builder, count, intp=_INT64)


def _helper(write: Callable[[_Code], Any], kinds: str, returned: Any = types.void) -> Any:
    """Make a function for kernels; ``kinds`` are its arguments: (a)rray, (i)nteger, (f)loat."""
    scalars = {"i": types.int64, "f": types.float32}

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = write(_Code(context, builder, signature, arguments))
        return context.get_dummy_value() if result is None else result

    def helper(_: Any, *given: Any) -> tuple[Any, Any]:
        wanted = (scalars.get(kind, own) for kind, own in zip(kinds, given, strict=True))
        return returned(*wanted), build

    names = ("context", *(f"{kind}{number}" for number, kind in enumerate(kinds)))
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD  # an intrinsic cannot have *arguments
    helper.__signature__ = inspect.Signature([inspect.Parameter(n, plain) for n in names])  # type: ignore[attr-defined]
    return intrinsic(helper)


def _subtract_rows(n_vectors: int) -> Callable[[_Code], None]:
    """rows[target:+width] -= sum over q < count of factors[start + q] * rows[first + q*stride:+width]."""

    def write(code: _Code) -> None:
        rows, target, first, stride, factors, start, count = code.arguments
        own = code.offset(rows, target)
        parts = [_LANES * number for number in range(n_vectors)]
        sums = code.registers([code.load(code.offset(own, part)) for part in parts])
        factor_at = code.offset(factors, start)
        with code.loop(count) as loop:
            factor = code.builder.load(code.offset(factor_at, loop.index))
            less = code.spread(code.builder.fsub(ir.Constant(_FLOAT, 0.0), factor))
            source = code.offset(rows, first, code.times(loop.index, stride))
            for part, total in zip(parts, sums, strict=True):
                other = code.load(code.offset(source, part))
                result = code.add_product(less, other, code.builder.load(total))
                code.builder.store(result, total)
        for part, total in zip(parts, sums, strict=True):
            code.store(code.builder.load(total), code.offset(own, part))

    return write


def _product(n_vectors: int) -> Callable[[_Code], None]:
    """out[i, :width] = sum over q < count of x[i * x_row + q * x_step] * y[q * y_step:+width], i < 4."""

    def write(code: _Code) -> None:
        x, x_at, x_row, x_step, y, y_at, y_step, count, out, out_at, out_row = code.arguments
        parts = [_LANES * number for number in range(n_vectors)]
        nothing = ir.Constant(_VECTOR, [0.0] * _LANES)
        sums = code.registers([nothing] * (4 * n_vectors))
        left = [code.offset(x, x_at, code.times(row, x_row)) for row in range(4)]
        right = code.offset(y, y_at)
        with code.loop(count) as loop:
            source = code.offset(right, code.times(loop.index, y_step))
            columns = [code.load(code.offset(source, part)) for part in parts]
            step = code.times(loop.index, x_step)
            for row in range(4):
                factor = code.spread(code.builder.load(code.offset(left[row], step)))
                for number, column in enumerate(columns):
                    total = sums[row * n_vectors + number]
                    result = code.add_product(factor, column, code.builder.load(total))
                    code.builder.store(result, total)
        for row in range(4):
            own = code.offset(out, out_at, code.times(row, out_row))
            for number, part in enumerate(parts):
                total = code.builder.load(sums[row * n_vectors + number])
                code.store(total, code.offset(own, part))

    return write


def _take_patch(code: _Code) -> None:
    """row[at + l * side:+8] = pixels[corner + lines[l]:+8] for all lines, one after the other.

    What is written beyond ``side`` is overwritten by the next line; eight floats more must be there.
    """
    pixels, corner, lines, n_lines, side, row, at = code.arguments
    source, target = code.offset(pixels, corner), code.offset(row, at)
    with code.loop(n_lines) as loop:
        line = code.builder.load(code.offset(lines, loop.index))
        values = code.load(code.offset(source, line))
        code.store(values, code.offset(target, code.times(loop.index, side)))


def _add_patch(code: _Code) -> None:
    """total[corner + lines[l]:+8] += lanes * (a * row[at + l * side:+8] + b * mean[l * side:+8]).

    lanes are ``side`` ones and then zeros.
    """
    total, corner, lines, n_lines, side, row, at, mean, lanes, a, b = code.arguments
    target, source = code.offset(total, corner), code.offset(row, at)
    line_only = code.load(lanes)
    own = code.builder.fmul(line_only, code.spread(a))
    common = code.builder.fmul(line_only, code.spread(b))
    with code.loop(n_lines) as loop:
        line = code.builder.load(code.offset(lines, loop.index))
        place = code.offset(target, line)
        step = code.times(loop.index, side)
        result = code.add_product(own, code.load(code.offset(source, step)), code.load(place))
        result = code.add_product(common, code.load(code.offset(mean, step)), result)
        code.store(result, place)


def _above(code: _Code) -> Any:
    """Return bits: is numbers[at + i] above the threshold, i < size <= 64?  Seven more are read."""
    numbers, at, size, threshold = code.arguments
    builder, limit = code.builder, code.spread(threshold)
    mask = cgutils.alloca_once_value(builder, ir.Constant(_INT64, 0))
    with code.loop(builder.lshr(builder.add(size, code.whole(7)), code.whole(3))) as loop:
        first = code.times(loop.index, _LANES)
        are = builder.fcmp_ordered(">", code.load(code.offset(numbers, at, first)), limit)
        bits = builder.zext(builder.bitcast(are, ir.IntType(_LANES)), _INT64)
        builder.store(builder.or_(builder.load(mask), builder.shl(bits, first)), mask)
    own = builder.lshr(ir.Constant(_INT64, -1), builder.sub(code.whole(64), size))
    return builder.and_(builder.load(mask), own)


def _lowest_bit(code: _Code) -> Any:
    """Return the place of the lowest bit of a number that is not 0."""
    return code.builder.cttz(code.arguments[0], ir.Constant(ir.IntType(1), 1))


def _count_bits(code: _Code) -> Any:
    """Return how many bits are set."""
    return code.builder.ctpop(code.arguments[0])


@jit
def plain_subtract_rows(rows, target, first, stride, factors, start, count, width):
    """Do what ``_subtract_rows`` does, for any width."""
    row = rows[target : target + width]
    for q in range(count):
        source = rows[first + q * stride : first + q * stride + width]
        factor = factors[start + q]
        for j in range(width):
            row[j] -= factor * source[j]


@jit
def plain_product(
    x, x_at, x_row, x_step, y, y_at, y_step, count, out, out_at, out_row, width
):  # fmt: skip
    """Do what ``_product`` does, for any width."""
    for i in range(4):
        own = out[out_at + i * out_row : out_at + i * out_row + width]
        for j in range(width):
            own[j] = 0.0
        for q in range(count):
            source = y[y_at + q * y_step : y_at + q * y_step + width]
            factor = x[x_at + i * x_row + q * x_step]
            for j in range(width):
                own[j] += factor * source[j]


def _of_width(plain: Any, width: int) -> Any:
    """Return a plain twin for so many columns."""

    @jit
    def of_width(*arguments):
        plain(*arguments, width)

    return of_width


@jit
def plain_take_patch(pixels, corner, lines, n_lines, side, row, at):
    """Do what ``_take_patch`` does; nothing is written beyond the patch."""
    for line in range(n_lines):
        for j in range(side):
            row[at + line * side + j] = pixels[corner + lines[line] + j]


@jit
def plain_add_patch(total, corner, lines, n_lines, side, row, at, mean, lanes, a, b):
    """Do what ``_add_patch`` does."""
    for line in range(n_lines):
        for j in range(side):
            e = line * side + j
            total[corner + lines[line] + j] += a * row[at + e] + b * mean[e]


@jit
def plain_above(numbers, at, size, threshold):
    """Do what ``_above`` does."""
    mask = 0
    for i in range(size):
        mask |= int(numbers[at + i] > threshold) << i
    return mask


@jit
def plain_lowest_bit(number):
    """Do what ``_lowest_bit`` does."""
    place = 0
    while not (number >> place) & 1:
        place += 1
    return place


@jit
def plain_count_bits(number):
    """Do what ``_count_bits`` does."""
    count = 0
    while number:
        number &= number - 1
        count += 1
    return count


_add = _helper(_add_patch, "aiaiiaiaaff")


@jit
def _probe(floats, lines):
    """Build and run one of the helpers: if this can be done, so can the others."""
    _add(floats, 0, lines, 1, 8, floats, 0, floats, floats, floats[0], floats[0])


def choose(probe: Callable[..., None]) -> tuple[Any, ...]:
    """Return the helpers if they can be built here, else their plain twins."""
    try:
        probe(np.zeros(8, np.float32), np.zeros(1, np.int64))
    except Exception:  # whatever a code generator raises
        rows = (_of_width(plain_subtract_rows, width) for width in (32, 40, 56, 64))
        products = (_of_width(plain_product, width) for width in (8, 16, 24))
        patches = plain_take_patch, plain_add_patch
        return *rows, *products, *patches, plain_above, plain_lowest_bit, plain_count_bits
    rows = (_helper(_subtract_rows(n), "aiiiaii") for n in (4, 5, 7, 8))
    products = (_helper(_product(n), "aiiiaiiiaii") for n in (1, 2, 3))
    bits = (_helper(write, "i", types.int64) for write in (_lowest_bit, _count_bits))
    above = _helper(_above, "aiif", types.int64)
    return *rows, *products, _helper(_take_patch, "aiaiiai"), _add, above, *bits


(
    subtract_rows_32, subtract_rows_40, subtract_rows_56, subtract_rows_64, product_8, product_16,
    product_24, take_patch, add_patch, above, lowest_bit, count_bits,
) = choose(_probe)  # fmt: skip
