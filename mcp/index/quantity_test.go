package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQuantities: operators and units are read, and what only looks like them is not.
func TestQuantities(t *testing.T) {
	for in, want := range map[string]string{
		"Multiply 12 by 9":                        "multiply~arithmetic",
		"what is 12 times 9":                      "multiply~arithmetic",
		"12 × 9":                                  "multiply~arithmetic",
		"12×9":                                    "multiply~arithmetic",
		"what's 3 x 4?":                           "multiply~arithmetic",
		"(3 + 4) * 2":                             "sum~arithmetic multiply~arithmetic",
		"what is seven plus six":                  "sum~arithmetic",
		"100-37":                                  "subtract~arithmetic",
		"calculate 144/12":                        "divide~arithmetic",
		"144 divided by 12":                       "divide~arithmetic",
		"divide 144 by 12":                        "divide~arithmetic",
		"2^10":                                    "power~arithmetic",
		"2 to the power of 10":                    "power~arithmetic",
		"9 squared":                               "power~arithmetic",
		"square root of 144":                      "sqrt~arithmetic",
		"log of 1000":                             "log~arithmetic",
		"15% of 240":                              "percent~arithmetic",
		"18 percent on 54.20":                     "percent~arithmetic",
		"add up 3.5, 7 and 12":                    "sum~arithmetic",
		"the sum of 3 and 4":                      "sum~arithmetic",
		"how many grams are in 3 ounces":          "grams~unit ounces~unit convert~conversion",
		"72 °F in °C":                             "f~unit c~unit convert~conversion",
		"98.6f in c":                              "f~unit c~unit convert~conversion",
		"5 feet 11 inches in cm":                  "feet~unit inches~unit cm~unit convert~conversion",
		"100 dollars to euros":                    "dollars~currency euros~currency convert~conversion",
		"run 5 km in 30 minutes":                  "'km~unit",
		"set the thermostat to 21 degrees":        "'degrees~unit",
		"take the pill three times a day":         "",
		"retry 3 times":                           "",
		"events of 2026-01-31":                    "",
		"2026-01-31":                              "",
		"31/1/2026":                               "",
		"pages 3-7 of the report":                 "",
		"open 24/7":                               "",
		"release 1.2.3 of the app":                "",
		"ping 192.168.1.1":                        "",
		"resize it to 640x480":                    "",
		"divide the team into groups":             "",
		"add 3 eggs to my list":                   "",
		"add Bob to team 4":                       "",
		"the total of order 12":                   "",
		"build a C program":                       "",
		"set the power to the right level":        "",
		"show the log of the build":               "",
		"call +1 555 123":                         "",
		`post "12 * 9" in #general`:               "",
		"a five-star hotel":                       "",
		"- 3 -":                                   "",
		"":                                        "",
		strings.Repeat("5 m ", 2000):              "'m~unit",
		strings.Repeat("5 m 6 km ", 400):          "m~unit km~unit convert~conversion",
		"\xff 3 * \xff 4 °":                       "",
		"turn left at the square root vegetables": "sqrt~arithmetic",
	} {
		var got []string
		for _, a := range parse(in).words {
			if len(a.english) == 0 {
				continue
			}
			w := fmt.Sprintf("%s~%s", a.word, a.english[0])
			if a.literal {
				w = "'" + w
			}
			got = append(got, w)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("parse(%.60q): -want +got\n%s", in, diff)
		}
	}
}

// TestValuesOfRequests: what a request passes to a tool is a value, whatever it consists of.
func TestValuesOfRequests(t *testing.T) {
	for in, want := range map[string]string{
		"Write down that the router is old": "note 'router 'old",
		"add a note: call the bank":         "add note 'call 'bank",
		"remember to water the plants":      "remember water plants",
		"throw a d20 and 2d6+3":             "throw dice",
		"paint #ff8800":                     "paint color",
		"close #123456 and #12":             "close color '12",
		"time in Lagos":                     "time 'lagos",
		"note: buy milk":                    "note 'buy 'milk",
	} {
		if diff := cmp.Diff(want, show(parse(in))); diff != "" {
			t.Errorf("parse(%q): -want +got\n%s", in, diff)
		}
	}
}

// TestCalculatorIsFound: a calculator is found by sums beside a clock that shares a word
// with them, and refuses what only contains numbers.
func TestCalculatorIsFound(t *testing.T) {
	x := officeIndex(t, Options{})
	for _, in := range []string{"Multiply 12 by 9", "what is 12 times 9", "square root of 144", "15% of 240", "12×9", "three plus four"} {
		if got := ids(t, x, Query{Text: in, MinScore: 0.4}); len(got) == 0 || got[0] != "misc:calculate" {
			t.Errorf("Search(%q) = %v", in, got)
		}
	}
	for _, in := range []string{"12 eggs and 9 apples", "the 12 disciples", "charge customer 4411 29.90", "2026-01-31"} {
		if got := ids(t, x, Query{Text: in, MinScore: 0.4}); slices.Contains(got, "misc:calculate") {
			t.Errorf("Search(%q) = %v", in, got)
		}
	}
}

// FuzzQuantities: any request is read in bounds.
func FuzzQuantities(f *testing.F) {
	for _, s := range []string{"12 × 9", "72°f in c", "2026-01-31", "add up 3, 4 and 5", "Write down that", "\xff°*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = s[:min(len(s), maxRequest)]
		for at, m := range quantities(s).at {
			if at < 0 || at >= len(s) {
				t.Errorf("%q at %d", m.word, at)
			}
		}
		parse(s)
	})
}
