package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

//go:embed units.txt
var unitsText string

// unit is one line's entry of units.txt. Base units = (value + shift) * factor.
type unit struct {
	symbol, quantity string
	factor, shift    float64
}

// units maps each name, and its lower case where that is unambiguous.
var units = sync.OnceValue(func() map[string]unit {
	m := map[string]unit{}
	for line := range strings.Lines(unitsText) {
		quantity, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for entry := range strings.SplitSeq(list, "; ") {
			all, factor, ok := strings.Cut(entry, "=")
			if !ok {
				continue
			}
			over, under, _ := strings.Cut(factor, "/")
			u := unit{symbol: strings.Split(all, ",")[0], quantity: quantity}
			u.factor, _ = strconv.ParseFloat(over, 64) // TestData parses each
			if divisor, err := strconv.ParseFloat(under, 64); err == nil {
				u.factor /= divisor
			}
			u.shift = map[string]float64{"C": 273.15, "F": 459.67}[u.symbol]
			for name := range strings.SplitSeq(all, ",") {
				m[name] = u
				if _, taken := m[strings.ToLower(name)]; !taken { // MB comes before Mb, so that mb is the byte
					m[strings.ToLower(name)] = u
				}
			}
		}
	}
	return m
})

var plural = regexp.MustCompile(`(\w\w)s\b`)

// findUnit accepts symbols, names and plurals ("meters per second").
func findUnit(name string) (unit, error) {
	all := units()
	name = strings.TrimSpace(strings.ReplaceAll(name, "_", " "))
	singular := plural.ReplaceAllString(name, "$1")
	for _, form := range []string{name, singular, strings.ToLower(name), strings.ToLower(singular)} {
		if u, ok := all[form]; ok {
			return u, nil
		}
	}
	near := cmp.Or(suggest(strings.ToLower(name), slices.Collect(maps.Keys(all))), "; units are written as km, mile, °F, GiB, kWh")
	return unit{}, fmt.Errorf("unknown unit %.60q%s", name, near)
}

type unitArgs struct {
	Value float64 `json:"value" jsonschema:"How much, in the first unit."`
	From  string  `json:"from" jsonschema:"Unit of the value, as symbol or name: km, miles, °F, lb, cup, GiB, kWh, psi. Case counts in data units: Mb is megabit, MB megabyte."`
	To    string  `json:"to" jsonschema:"Unit to convert to, of the same quantity."`
}

type unitOut struct {
	Result float64 `json:"result"`
	Unit   string  `json:"unit"`
	Exact  bool    `json:"exact" jsonschema:"false if the result was rounded to 15 digits"`
}

func addUnits(s *sdk.Server) {
	add(s, about(reads, "convert_units", "Convert units", "Converts a measurement between units of length, mass, temperature, volume, area, speed, data, energy, power, pressure, time or angle. Example: 26.2 miles in km, 98.6 °F in °C."),
		limits{"from": length(1, 40), "to": length(1, 40)}, func(in unitArgs) (unitOut, string, error) {
			from, err := findUnit(in.From)
			if err != nil {
				return unitOut{}, "", err
			}
			to, err := findUnit(in.To)
			if err != nil {
				return unitOut{}, "", err
			}
			if from.quantity != to.quantity {
				return unitOut{}, "", fmt.Errorf("%s is a unit of %s and %s one of %s: give two units of one quantity", from.symbol, from.quantity, to.symbol, to.quantity)
			}
			base := (in.Value + from.shift) * from.factor
			if from.quantity == "temperature" && base < 0 {
				return unitOut{}, "", fmt.Errorf("%v %s is below absolute zero", in.Value, from.symbol)
			}
			result := max(-math.MaxFloat64, min(base/to.factor-to.shift, math.MaxFloat64)) // JSON has no infinity
			text, exact := decimal(result)
			return unitOut{result, to.symbol, exact}, fmt.Sprint(in.Value, " ", from.symbol, " ", text, " ", to.symbol), nil
		})
}
