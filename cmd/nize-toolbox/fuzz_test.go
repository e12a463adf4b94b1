package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func FuzzCalculate(f *testing.F) {
	for _, s := range []string{"1+2*3", "2^-3^2", "sqrt(2)%3!", "1e3e", "max(1,2", "((1))%", "9!!", "0^0", "-0.5^(1/2)", "log(8,2)", "round(1e50,-3)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, _, err := calculate(calcArgs{s}) // one that does not end is reported by the fuzzer
		if err == nil {
			if _, err := json.Marshal(out); err != nil {
				t.Errorf("%q: %v", s, err)
			}
		}
	})
}

func FuzzDice(f *testing.F) {
	f.Add("2d6+3")
	f.Add("4d6kh3-d%+1000d1000000")
	f.Fuzz(func(t *testing.T, s string) {
		out, _, err := (&toolbox{}).rollDice(diceArgs{s})
		if err == nil && (out.Total < out.Min || out.Total > out.Max) {
			t.Errorf("%q: %d is not in %d to %d", s, out.Total, out.Min, out.Max)
		}
	})
}

func FuzzUnits(f *testing.F) {
	f.Add("1e3", "km", "Miles")
	f.Add("-0.5", "°F", "k")
	f.Add(" 0.5", "°F", "k")
	f.Add(`"0.5"`, "°F", "k")
	f.Fuzz(func(t *testing.T, value, from, to string) {
		var n json.Number
		if json.Unmarshal([]byte(value), &n) != nil {
			return // no such argument arrives
		}
		out, _, err := convertUnits(unitArgs{n, from, to})
		if err != nil {
			return
		}
		if _, err := json.Marshal(out); err != nil {
			t.Errorf("%s %s in %s: %v", value, from, to, err)
		}
	})
}

func FuzzTime(f *testing.F) {
	f.Add("3 pm", "Tokyo")
	f.Add("2026-11-21 15:04", "UTC+5:30")
	f.Fuzz(func(t *testing.T, clock, place string) {
		w, err := find(place)
		if err != nil {
			w.loc = time.UTC
		}
		if _, _, err := parseTime(clock, w.loc, noon); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %v", err)
		}
	})
}
