package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"sort"
	"strings"
	"sync"
)

// unitTable has a line for each quantity: names of one unit joined by commas
// (the symbol first), "=", and how many base units it is. Factors are exact by
// definition (international foot, pound, calorie, standard atmosphere …), but
// for the parsec.
const unitTable = `
length: m,meter,metre=1; km,kilometer,kilometre=1000; cm,centimeter,centimetre=0.01; mm,millimeter,millimetre=0.001; um,µm,micrometer,micrometre,micron=0.000001; nm,nanometer,nanometre=0.000000001; in,inch,inches,"=0.0254; ft,foot,feet,'=0.3048; yd,yard=0.9144; mi,mile=1609.344; nmi,nautical mile=1852; ly,light year,lightyear=9460730472580800; au,astronomical unit=149597870700; pc,parsec=30856775814913673; furlong=201.168; fathom=1.8288; pt,typographic point=0.0254/72
mass: kg,kilogram,kilogramme=1; g,gram,gramme=0.001; mg,milligram=0.000001; ug,µg,microgram=0.000000001; t,tonne,metric ton=1000; lb,pound,lbs=0.45359237; oz,ounce=0.028349523125; st,stone=6.35029318; ton,short ton,us ton=907.18474; long ton,imperial ton=1016.0469088; ct,carat=0.0002; gr,grain=0.00006479891; ozt,troy ounce=0.0311034768
volume: l,liter,litre=1; ml,milliliter,millilitre=0.001; cl,centiliter,centilitre=0.01; dl,deciliter,decilitre=0.1; hl,hectoliter,hectolitre=100; m3,m³,cubic meter,cubic metre=1000; cm3,cm³,cc,cubic centimeter,cubic centimetre=0.001; in3,in³,cubic inch=0.016387064; ft3,ft³,cubic foot,cubic feet=28.316846592; gal,gallon,us gallon=3.785411784; qt,quart,us quart=0.946352946; pint,us pint=0.473176473; cup,us cup=0.2365882365; fl oz,floz,fluid ounce,us fluid ounce=0.0295735295625; tbsp,tablespoon=0.01478676478125; tsp,teaspoon=0.00492892159375; imp gal,imperial gallon,uk gallon=4.54609; imp pint,imperial pint,uk pint=0.56826125; imp fl oz,imperial fluid ounce=0.0284130625; bbl,oil barrel,barrel=158.987294928
area: m2,m²,square meter,square metre=1; km2,km²,square kilometer,square kilometre=1000000; cm2,cm²,square centimeter,square centimetre=0.0001; mm2,mm²,square millimeter=0.000001; ha,hectare=10000; are=100; acre=4046.8564224; ft2,ft²,sq ft,square foot,square feet=0.09290304; in2,in²,sq in,square inch=0.00064516; yd2,yd²,sq yd,square yard=0.83612736; mi2,mi²,sq mi,square mile=2589988.110336
speed: m/s,mps,meter per second,metre per second=1; km/h,kmh,kph,kilometer per hour,kilometre per hour=1/3.6; mph,mi/h,mile per hour,miles per hour=0.44704; kn,kt,knot=1852/3600; ft/s,fps,foot per second,feet per second=0.3048; speed of light=299792458
data: B,byte=1; bit=1/8; kB,KB,kilobyte=1000; MB,megabyte=1000000; GB,gigabyte=1000000000; TB,terabyte=1000000000000; PB,petabyte=1000000000000000; KiB,kibibyte=1024; MiB,mebibyte=1048576; GiB,gibibyte=1073741824; TiB,tebibyte=1099511627776; PiB,pebibyte=1125899906842624; kbit,kilobit,kb=125; Mbit,megabit,Mb=125000; Gbit,gigabit,Gb=125000000; Tbit,terabit,Tb=125000000000
energy: J,joule=1; kJ,kilojoule=1000; MJ,megajoule=1000000; cal,calorie=4.184; kcal,kilocalorie,food calorie=4184; Wh,watt hour=3600; kWh,kilowatt hour=3600000; MWh,megawatt hour=3600000000; eV,electronvolt=0.0000000000000000001602176634; BTU,british thermal unit=1055.05585262; ft lb,foot pound=1.3558179483314004; erg=0.0000001
pressure: Pa,pascal=1; hPa,hectopascal=100; kPa,kilopascal=1000; MPa,megapascal=1000000; bar=100000; mbar,millibar=100; atm,atmosphere=101325; psi,pound per square inch=6894.757293168361; mmHg,millimeter of mercury,millimetre of mercury=133.322387415; torr=101325/760; inHg,inch of mercury=3386.388640341
time: s,sec,second=1; ms,millisecond=0.001; us,µs,microsecond=0.000001; ns,nanosecond=0.000000001; min,minute=60; h,hr,hour=3600; d,day=86400; week,wk=604800; fortnight=1209600; month (average)=2629746; year (average),julian year=31557600
temperature: K,kelvin=1; C,°C,celsius,centigrade,degrees celsius=1; F,°F,fahrenheit,degrees fahrenheit=5/9; R,°R,rankine=5/9
power: W,watt=1; kW,kilowatt=1000; MW,megawatt=1000000; hp,horsepower=745.69987158227022; PS,metric horsepower=735.49875
angle: turn,revolution=360; deg,°,degree=1; arcmin,arcminute=1/60; arcsec,arcsecond=1/3600; gon,gradian=0.9
`

// unit is one of them. Kelvin = (value + shift) * factor.
type unit struct {
	symbol, quantity string
	factor, shift    *big.Rat
}

// units maps every name, and its lower case where that is unambiguous.
var units = sync.OnceValue(func() map[string]unit {
	m := map[string]unit{}
	for line := range strings.Lines(unitTable) {
		quantity, list, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		for entry := range strings.SplitSeq(list, "; ") {
			names, value, _ := strings.Cut(entry, "=")
			all := strings.Split(names, ",")
			u := unit{symbol: all[0], quantity: quantity, factor: ratio(value), shift: new(big.Rat)}
			switch all[0] {
			case "C":
				u.shift = ratio("273.15")
			case "F":
				u.shift = ratio("459.67")
			}
			for _, name := range all {
				m[name] = u
			}
		}
	}
	// "kb" is a kilobit by its symbol, "mb" nobody's: the byte is meant far more often.
	for name, u := range m {
		if low := strings.ToLower(name); low != name {
			if _, taken := m[low]; !taken && (u.quantity != "data" || !strings.HasSuffix(name, "b")) {
				m[low] = u
			}
		}
	}
	return m
})

// ratio reads a factor of the table, which the tests have read already.
func ratio(s string) *big.Rat {
	over, under, ok := strings.Cut(s, "/")
	r, good := new(big.Rat).SetString(over)
	if ok && good {
		var d *big.Rat
		if d, good = new(big.Rat).SetString(under); good {
			r.Quo(r, d)
		}
	}
	if !good {
		panic("unit table: " + s)
	}
	return r
}

// findUnit accepts symbols, names and plurals.
func findUnit(name string) (unit, error) {
	all := units()
	name = strings.Join(strings.Fields(strings.ReplaceAll(name, "_", " ")), " ")
	for _, form := range []string{name, strings.TrimSuffix(name, "."), strings.TrimSuffix(name, "s"), singular(name),
		strings.ToLower(name), strings.ToLower(strings.TrimSuffix(name, "s")), singular(strings.ToLower(name))} {
		if u, ok := all[form]; ok {
			return u, nil
		}
	}
	names := make([]string, 0, len(all))
	for n := range all {
		names = append(names, n)
	}
	sort.Strings(names)
	near := suggest(strings.ToLower(shorten(name)), names)
	if near == "" {
		near = "; quantities are length, mass, temperature, volume, area, speed, data, energy, power, pressure, time and angle, units are written as km, mile, °F, GiB, kWh"
	}
	return unit{}, fmt.Errorf("unknown unit %q%s", shorten(name), near)
}

// singular undoes "meters per second" and "square meters".
func singular(name string) string {
	fields := strings.Fields(name)
	for i, f := range fields {
		if len(f) > 2 {
			fields[i] = strings.TrimSuffix(f, "s")
		}
	}
	return strings.Join(fields, " ")
}

type unitArgs struct {
	Value json.Number `json:"value"`
	From  string      `json:"from"`
	To    string      `json:"to"`
}

type unitOut struct {
	Value    json.Number `json:"value"`
	From     string      `json:"from"`
	Result   json.Number `json:"result"`
	To       string      `json:"to"`
	Quantity string      `json:"quantity"`
	Exact    bool        `json:"exact"`
}

func convertUnits(in unitArgs) (unitOut, string, error) {
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
	value, err := readNumber(string(in.Value))
	if err != nil {
		return unitOut{}, "", err
	}
	base := new(big.Rat).Mul(new(big.Rat).Add(value, from.shift), from.factor)
	if from.quantity == "temperature" && base.Sign() < 0 {
		return unitOut{}, "", fmt.Errorf("%s %s is below absolute zero", in.Value, from.symbol)
	}
	result := new(big.Rat).Sub(new(big.Rat).Quo(base, to.factor), to.shift)
	text, exact := number(result)
	out := unitOut{Value: in.Value, From: from.symbol, Result: jsonNumber(text), To: to.symbol, Quantity: from.quantity, Exact: exact}
	sign := "="
	if !exact {
		sign = "≈"
	}
	return out, fmt.Sprintf("%s %s %s %s %s", in.Value, from.symbol, sign, text, to.symbol), nil
}
