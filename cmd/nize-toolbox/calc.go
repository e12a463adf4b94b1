package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Bounds of one calculation.
const (
	maxExpression = 1000   // bytes
	maxNesting    = 64     // of brackets, signs and powers
	maxBits       = 20_000 // of a numerator or denominator, about 6,000 digits
)

var errBig = errors.New("the result is too large: at most 6,000 digits are computed")

// value is an exact rational, or one that a root or a function made inexact.
type value struct {
	r       *big.Rat
	inexact bool
}

// calculator is a recursive descent parser that computes as it reads:
//
//	sum     = product { ("+" | "-") product }
//	product = signed { ("*" | "/" | "%") signed | primary }      the last is 2(3+4) or 2pi
//	signed  = { "+" | "-" } power
//	power   = postfix [ ("^" | "**") signed ]                    from the right
//	postfix = primary { "!" | "%" }                              "%" before an operator, ")" or the end
//	primary = number | name | name "(" sum { "," sum } ")" | "(" sum ")"
type calculator struct {
	s     string
	pos   int
	depth int
}

func evaluate(s string) (value, error) {
	if len(s) > maxExpression {
		return value{}, fmt.Errorf("the expression has %d characters: at most %d", len(s), maxExpression)
	}
	c := calculator{s: strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", "–", "-", "²", "^2", "³", "^3", "√", "sqrt ", "π", "pi", "**", "^").Replace(s)}
	if c.peek() == 0 {
		return value{}, errors.New("the expression is empty")
	}
	v, err := c.sum()
	if err != nil {
		return value{}, err
	}
	if c.peek() != 0 {
		return value{}, c.unexpected()
	}
	return v, nil
}

// peek skips space and returns the next byte, 0 at the end.
func (c *calculator) peek() byte {
	for c.pos < len(c.s) && strings.IndexByte(" \t\n\r", c.s[c.pos]) >= 0 {
		c.pos++
	}
	if c.pos >= len(c.s) {
		return 0
	}
	return c.s[c.pos]
}

func (c *calculator) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.pos++
	return true
}

func (c *calculator) unexpected() error {
	if c.peek() == 0 {
		return errors.New("the expression ends too early: a number or a bracket is missing")
	}
	return fmt.Errorf("can't read %q at character %d: write numbers, + - * / %% ^ ! ( ) and functions such as sqrt(2)", shorten(c.s[c.pos:]), c.pos+1)
}

func (c *calculator) sum() (value, error) {
	if c.depth++; c.depth > maxNesting {
		return value{}, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	defer func() { c.depth-- }()
	left, err := c.product()
	for err == nil {
		switch op := c.peek(); op {
		case '+', '-':
			c.pos++
			var right value
			if right, err = c.product(); err == nil {
				left, err = apply(op, left, right)
			}
		default:
			return left, nil
		}
	}
	return left, err
}

func (c *calculator) product() (value, error) {
	left, err := c.signed()
	for err == nil {
		op := c.peek()
		switch {
		case op == '*' || op == '/' || op == '%':
			c.pos++
		case op == '(' || isLetter(op):
			op = '*' // 2(3+4), 2pi
		default:
			return left, nil
		}
		var right value
		if right, err = c.signed(); err == nil {
			left, err = apply(op, left, right)
		}
	}
	return left, err
}

func (c *calculator) signed() (value, error) {
	if c.depth++; c.depth > maxNesting {
		return value{}, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	defer func() { c.depth-- }()
	if c.take('-') {
		v, err := c.signed()
		if err != nil {
			return v, err
		}
		return value{new(big.Rat).Neg(v.r), v.inexact}, nil
	}
	if c.take('+') {
		return c.signed()
	}
	base, err := c.postfix()
	if err != nil || !c.take('^') {
		return base, err
	}
	exponent, err := c.signed()
	if err != nil {
		return value{}, err
	}
	return power(base, exponent)
}

func (c *calculator) postfix() (value, error) {
	v, err := c.primary()
	for err == nil {
		switch {
		case c.peek() == '!':
			c.pos++
			v, err = factorial(v)
		case c.peek() == '%' && c.percent():
			c.pos++
			v = value{new(big.Rat).Quo(v.r, big.NewRat(100, 1)), v.inexact}
		default:
			return v, nil
		}
	}
	return v, err
}

// percent says whether the % here is a percent sign: nothing follows that it
// could divide.
func (c *calculator) percent() bool {
	next := calculator{s: c.s, pos: c.pos + 1}
	b := next.peek()
	return b == 0 || strings.IndexByte("+-*/^)%,!", b) >= 0
}

func (c *calculator) primary() (value, error) {
	b := c.peek()
	switch {
	case b == '(':
		c.pos++
		v, err := c.sum()
		if err == nil && !c.take(')') {
			err = c.unexpected()
		}
		return v, err
	case isDigit(b) || b == '.':
		return c.number()
	case isLetter(b):
		return c.name()
	}
	return value{}, c.unexpected()
}

func isDigit(b byte) bool  { return b >= '0' && b <= '9' }
func isLetter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

// number reads 1, 1.5, .5, 1_000 and 1e-3.
func (c *calculator) number() (value, error) {
	start := c.pos
	digits := func() {
		for c.pos < len(c.s) && (isDigit(c.s[c.pos]) || c.s[c.pos] == '_') {
			c.pos++
		}
	}
	digits()
	if c.pos < len(c.s) && c.s[c.pos] == '.' {
		c.pos++
		digits()
	}
	if end := c.pos; end < len(c.s) && (c.s[end] == 'e' || c.s[end] == 'E') {
		c.pos++
		if c.pos < len(c.s) && (c.s[c.pos] == '-' || c.s[c.pos] == '+') {
			c.pos++
		}
		if c.pos < len(c.s) && isDigit(c.s[c.pos]) {
			digits()
		} else {
			c.pos = end // 2e is two times e
		}
	}
	r, err := readNumber(c.s[start:c.pos])
	return value{r: r}, err
}

// name reads a constant or a function with its arguments.
func (c *calculator) name() (value, error) {
	start := c.pos
	for c.pos < len(c.s) && (isLetter(c.s[c.pos]) || isDigit(c.s[c.pos])) {
		c.pos++
	}
	name := strings.ToLower(c.s[start:c.pos])
	switch name {
	case "pi":
		return fromFloat(math.Pi)
	case "e":
		return fromFloat(math.E)
	case "tau":
		return fromFloat(2 * math.Pi)
	}
	f, ok := functions[name]
	if !ok {
		return value{}, fmt.Errorf("unknown name %q%s", shorten(name), suggest(name, functionNames()))
	}
	if !c.take('(') {
		if name == "sqrt" && (isDigit(c.peek()) || c.peek() == '.') { // √2
			v, err := c.number()
			if err != nil {
				return v, err
			}
			return f.call([]value{v})
		}
		return value{}, fmt.Errorf("%s needs brackets: %s(…)", name, name)
	}
	var args []value
	for {
		v, err := c.sum()
		if err != nil {
			return value{}, err
		}
		if args = append(args, v); !c.take(',') {
			break
		}
	}
	if !c.take(')') {
		return value{}, c.unexpected()
	}
	if len(args) < f.min || len(args) > f.max {
		return value{}, fmt.Errorf("%s takes %d to %d numbers, not %d", name, f.min, f.max, len(args))
	}
	return f.call(args)
}

type calcArgs struct {
	Expression string `json:"expression"`
}

type calcOut struct {
	Expression string      `json:"expression"`
	Result     json.Number `json:"result"`
	Exact      bool        `json:"exact"`
	Fraction   string      `json:"fraction,omitempty"`
}

func calculate(in calcArgs) (calcOut, string, error) {
	v, err := evaluate(in.Expression)
	if err != nil {
		return calcOut{}, "", err
	}
	text, exact := number(v.r)
	if v.inexact {
		text = plain(new(big.Float).SetPrec(200).SetRat(v.r).Text('g', 15))
		exact = false
	}
	out := calcOut{Expression: in.Expression, Result: jsonNumber(text), Exact: exact}
	sign := "="
	if !exact {
		sign = "≈"
		if !v.inexact && v.r.Num().BitLen() < 64 && v.r.Denom().BitLen() < 64 {
			out.Fraction = v.r.String()
		}
	}
	text = fmt.Sprintf("%s %s %s", strings.TrimSpace(in.Expression), sign, text)
	if out.Fraction != "" {
		text += " (" + out.Fraction + ")"
	}
	return out, text, nil
}
