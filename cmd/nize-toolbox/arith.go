package main

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// bounded refuses what would take long to go on with.
func bounded(r *big.Rat, inexact bool) (value, error) {
	if r.Num().BitLen() > maxBits || r.Denom().BitLen() > maxBits {
		return value{}, errBig
	}
	return value{r, inexact}, nil
}

func fromFloat(f float64) (value, error) {
	if math.IsNaN(f) {
		return value{}, errors.New("the result is not a real number")
	}
	r := new(big.Rat).SetFloat64(f)
	if r == nil {
		return value{}, errBig
	}
	return value{r, true}, nil
}

func (v value) float() float64 {
	f, _ := v.r.Float64() // the nearest, or infinite
	return f
}

func apply(op byte, a, b value) (value, error) {
	r, inexact := new(big.Rat), a.inexact || b.inexact
	switch op {
	case '+':
		r.Add(a.r, b.r)
	case '-':
		r.Sub(a.r, b.r)
	case '*':
		r.Mul(a.r, b.r)
	case '/':
		if b.r.Sign() == 0 {
			return value{}, errors.New("division by zero")
		}
		r.Quo(a.r, b.r)
	case '%':
		if b.r.Sign() == 0 {
			return value{}, errors.New("division by zero")
		}
		// The sign of the divisor, as in Python and on calculators.
		r.Sub(a.r, r.Mul(b.r, new(big.Rat).SetInt(floor(new(big.Rat).Quo(a.r, b.r)))))
	}
	return bounded(r, inexact)
}

func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean, and the denominator is positive
}

// round goes away from zero at a half.
func round(r *big.Rat) *big.Int {
	half := big.NewRat(1, 2)
	if r.Sign() < 0 {
		n := floor(new(big.Rat).Add(new(big.Rat).Neg(r), half))
		return n.Neg(n)
	}
	return floor(new(big.Rat).Add(r, half))
}

func power(base, exponent value) (value, error) {
	if !exponent.r.IsInt() || exponent.inexact && base.inexact {
		if exponent.r.Cmp(big.NewRat(1, 2)) == 0 {
			return root([]value{base})
		}
		return fromFloat(math.Pow(base.float(), exponent.float()))
	}
	n := exponent.r.Num()
	size := max(base.r.Num().BitLen(), base.r.Denom().BitLen())
	if base.r.Sign() == 0 || base.r.IsInt() && size == 1 {
		size = 0 // 0, 1 and -1 don't grow
	}
	if !n.IsInt64() && size > 0 || size > 0 && math.Abs(float64(n.Int64()))*float64(size-1) > maxBits {
		return value{}, errBig
	}
	if n.Sign() < 0 && base.r.Sign() == 0 {
		return value{}, errors.New("division by zero")
	}
	if size == 0 {
		odd := n.Bit(0) == 1
		switch {
		case n.Sign() == 0, base.r.Sign() != 0 && !odd:
			return value{big.NewRat(1, 1), base.inexact}, nil
		}
		return base, nil
	}
	abs := new(big.Int).Abs(n)
	r := new(big.Rat).SetFrac(new(big.Int).Exp(base.r.Num(), abs, nil), new(big.Int).Exp(base.r.Denom(), abs, nil))
	if n.Sign() < 0 {
		r.Inv(r)
	}
	return bounded(r, base.inexact || exponent.inexact)
}

func factorial(v value) (value, error) {
	if !v.r.IsInt() || v.r.Sign() < 0 || v.r.Cmp(big.NewRat(1000, 1)) > 0 {
		return value{}, errors.New("a factorial needs a whole number from 0 to 1000")
	}
	return bounded(new(big.Rat).SetInt(new(big.Int).MulRange(1, v.r.Num().Int64())), v.inexact)
}

// root is exact for squares of rationals.
func root(a []value) (value, error) {
	r := a[0].r
	if r.Sign() < 0 {
		return value{}, errors.New("the square root of a negative number is not real")
	}
	num, den := new(big.Int).Sqrt(r.Num()), new(big.Int).Sqrt(r.Denom())
	exact := new(big.Rat).SetFrac(num, den)
	if new(big.Rat).Mul(exact, exact).Cmp(r) == 0 {
		return value{exact, a[0].inexact}, nil
	}
	f := new(big.Float).SetPrec(256).SetRat(r)
	out, _ := f.Sqrt(f).Rat(nil)
	return bounded(out, true)
}

type function struct {
	min, max int
	call     func([]value) (value, error)
}

// ofFloat makes a function over float64.
func ofFloat(f func(float64) float64) function {
	return function{1, 1, func(a []value) (value, error) { return fromFloat(f(a[0].float())) }}
}

// whole makes a function from rationals to whole numbers.
func whole(f func(*big.Rat) *big.Int) function {
	return function{1, 1, func(a []value) (value, error) { return value{new(big.Rat).SetInt(f(a[0].r)), a[0].inexact}, nil }}
}

var functions map[string]function

func init() { // the table refers to functions that refer to it by suggest
	functions = map[string]function{
		"sqrt": {1, 1, root}, "cbrt": ofFloat(math.Cbrt), "exp": ofFloat(math.Exp), "ln": ofFloat(math.Log), "log2": ofFloat(math.Log2),
		"log10": ofFloat(math.Log10), "sin": ofFloat(math.Sin), "cos": ofFloat(math.Cos), "tan": ofFloat(math.Tan), "asin": ofFloat(math.Asin),
		"acos": ofFloat(math.Acos), "atan": ofFloat(math.Atan), "log": {1, 2, logarithm},
		"floor": whole(floor), "ceil": whole(func(r *big.Rat) *big.Int { n := floor(new(big.Rat).Neg(r)); return n.Neg(n) }),
		"trunc": whole(func(r *big.Rat) *big.Int { return new(big.Int).Quo(r.Num(), r.Denom()) }),
		"round": {1, 2, roundTo}, "abs": {1, 1, func(a []value) (value, error) { return value{new(big.Rat).Abs(a[0].r), a[0].inexact}, nil }},
		"min": {1, 100, func(a []value) (value, error) { return extreme(a, -1), nil }},
		"max": {1, 100, func(a []value) (value, error) { return extreme(a, 1), nil }},
		"sum": {1, 100, total}, "avg": {1, 100, average}, "gcd": {2, 2, gcd},
	}
}

func functionNames() []string {
	names := []string{"pi", "tau"}
	for name := range functions {
		names = append(names, name)
	}
	return sorted(names)
}

// logarithm is log(x), to base 10 as on calculators, or log(x, base).
func logarithm(a []value) (value, error) {
	if len(a) == 1 {
		return fromFloat(math.Log10(a[0].float()))
	}
	return fromFloat(math.Log(a[0].float()) / math.Log(a[1].float()))
}

func roundTo(a []value) (value, error) {
	if len(a) == 1 {
		return value{new(big.Rat).SetInt(round(a[0].r)), a[0].inexact}, nil
	}
	if !a[1].r.IsInt() || a[1].r.Cmp(big.NewRat(-50, 1)) < 0 || a[1].r.Cmp(big.NewRat(50, 1)) > 0 {
		return value{}, errors.New("round takes -50 to 50 decimals")
	}
	scale, err := power(value{r: big.NewRat(10, 1)}, a[1])
	if err != nil {
		return value{}, err
	}
	n := round(new(big.Rat).Mul(a[0].r, scale.r))
	return bounded(new(big.Rat).Quo(new(big.Rat).SetInt(n), scale.r), false)
}

func extreme(a []value, sign int) value {
	best := a[0]
	for _, v := range a[1:] {
		if v.r.Cmp(best.r) == sign {
			best = v
		}
	}
	return best
}

func total(a []value) (value, error) {
	sum, err := value{r: new(big.Rat)}, error(nil)
	for _, v := range a {
		if sum, err = apply('+', sum, v); err != nil {
			return value{}, err
		}
	}
	return sum, nil
}

func average(a []value) (value, error) {
	sum, err := total(a)
	if err != nil {
		return value{}, err
	}
	return apply('/', sum, value{r: big.NewRat(int64(len(a)), 1)})
}

func gcd(a []value) (value, error) {
	if !a[0].r.IsInt() || !a[1].r.IsInt() {
		return value{}, fmt.Errorf("gcd needs whole numbers")
	}
	x, y := new(big.Int).Abs(a[0].r.Num()), new(big.Int).Abs(a[1].r.Num())
	return value{r: new(big.Rat).SetInt(new(big.Int).GCD(nil, nil, x, y))}, nil
}
