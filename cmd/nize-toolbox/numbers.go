package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// number writes r as a decimal, exact if it is one of at most 40 places,
// otherwise rounded to 15 significant digits.
func number(r *big.Rat) (text string, exact bool) {
	if r.IsInt() {
		return r.Num().String(), true
	}
	if places, ok := r.FloatPrec(); ok && places <= 40 {
		return r.FloatString(places), true
	}
	f := new(big.Float).SetPrec(200).SetRat(r)
	return plain(f.Text('g', 15)), false
}

// plain drops trailing zeros of a fraction.
func plain(s string) string {
	mantissa, exp, hasExp := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if hasExp {
		return mantissa + "e" + exp
	}
	return mantissa
}

// readNumber reads a literal exactly, within bounds that keep arithmetic fast.
func readNumber(s string) (*big.Rat, error) {
	s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
	if len(s) > 400 {
		return nil, fmt.Errorf("a number has more than 400 characters")
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp > 400 || exp < -400 {
			return nil, fmt.Errorf("the exponent of %s is not between -400 and 400", shorten(s))
		}
	}
	if s == "" || strings.ContainsAny(s, "/xXbBoOpP") {
		return nil, fmt.Errorf("%q is not a decimal number", shorten(s))
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, fmt.Errorf("%q is not a decimal number", shorten(s))
	}
	return r, nil
}

// jsonNumber is text as a JSON number.
func jsonNumber(text string) json.Number { return json.Number(text) }

// integer is an int that also reads 5.0, which JSON Schema calls an integer
// and models write.
type integer int

func (n *integer) UnmarshalJSON(b []byte) error {
	r, err := readNumber(string(b))
	if err != nil {
		return err
	}
	if !r.IsInt() || !r.Num().IsInt64() {
		return fmt.Errorf("%s is not a whole number in range", shorten(string(b)))
	}
	*n = integer(r.Num().Int64())
	return nil
}
