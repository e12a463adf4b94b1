package index

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The rule of this file: a request that contains a sum or a measurement asks for a
// calculator or a converter, although no word of it names one. "12 * 9", "12 times 9" and
// "multiply 12 by 9" mean arithmetic; "72 fahrenheit in celsius" means units of temperature.
// So the operators and the units of a request get the words that such tools use for
// themselves, like the translations of a Chinese word. Only numbers make an operator out of
// a word: "three times a day" is no multiplication.

// arithmetic lists the words by which calculators call themselves.
var arithmetic = []string{"arithmetic", "calculate", "calculator", "math"}

// symbols maps operators between two numbers to their names.
var symbols = map[string]string{
	"*": "multiply", "×": "multiply", "·": "multiply", "x": "multiply", "times": "multiply", "multiplied": "multiply",
	"/": "divide", "÷": "divide", "divided": "divide",
	"+": "sum", "plus": "sum", "-": "subtract", "−": "subtract", "–": "subtract", "minus": "subtract",
	"^": "power", "**": "power", "mod": "modulo", "modulo": "modulo",
}

// operations maps verbs that mean arithmetic before a number.
var operations = map[string]string{
	"multiply": "multiply", "divide": "divide", "subtract": "subtract",
}

// powers maps words that mean arithmetic after a number.
var powers = map[string]string{"squared": "power", "cubed": "power", "factorial": "factorial"}

// functions maps words that mean arithmetic if a number follows.
var functions = map[string]string{
	"sqrt": "sqrt", "log": "log", "ln": "log", "logarithm": "log", "exp": "exp", "cos": "cos", "sin": "sin", "tan": "tan",
	"cosine": "cos", "sine": "sin", "tangent": "tan", "abs": "abs", "factorial": "factorial",
}

// sums maps words that mean arithmetic if a list of numbers follows.
var sums = map[string]string{"add": "sum", "sum": "sum", "total": "sum", "average": "average", "mean": "average", "product": "multiply", "difference": "subtract"}

// measures lists the quantities that are measured, the words that tools use for them, and
// their units. A money amount is one of them, so that a conversion of currencies is not
// taken for one of units.
const measures = `
unit length distance: m meter metre km kilometer kilometre cm centimeter centimetre mm millimeter millimetre inch inches ft foot feet yd yard mile mi
unit mass weight: kg kilo kilogram g gram mg milligram tonne ton lb lbs pound oz ounce stone
unit volume: l liter litre ml milliliter millilitre cl dl gal gallon quart pint cup tablespoon teaspoon tbsp tsp
unit temperature: celsius fahrenheit kelvin centigrade c f k degree
unit area: acre hectare sqft sqm
unit speed: mph kph kmh knot
unit energy: joule kj kwh wh calorie kcal btu
unit power: watt kw horsepower hp
unit pressure: pascal kpa bar psi atm
unit data: byte kb mb gb tb kib mib gib kilobyte megabyte gigabyte terabyte bit
unit angle: radian deg
currency money: usd eur gbp chf jpy cny dollar euro yen franc yuan rupee peso krona
`

// measure is a quantity of measures.
type measure []string

// units maps the names of units to their quantities.
var units = sync.OnceValue(func() map[string]measure {
	m := make(map[string]measure)
	for line := range strings.Lines(measures) {
		quantity, names, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		q := measure(strings.Fields(quantity))
		for name := range strings.FieldsSeq(names) {
			m[name] = q
			if len(name) > 3 {
				m[name+"s"] = q
			}
		}
	}
	return m
})

// numerals contains numbers that are written as words.
var numerals = func() map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq("zero one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million") {
		m[w] = struct{}{}
	}
	return m
}()

// item is one number, word or operator of a request.
type item struct {
	text   string // in lower case
	number bool
	start  int // of its token in the request
}

// items splits a text into numbers, words and operators. A token that mixes digits with
// anything but operators and a unit (a date, a version, an address) is a word.
func items(text string) (out []item) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			i += n
			continue
		}
		end := i + strings.IndexFunc(text[i:], unicode.IsSpace)
		if end < i {
			end = len(text)
		}
		first := len(out)
		out = token(out, text[i:end])
		for k := first; k < len(out); k++ {
			out[k].start = i
		}
		i = end
	}
	return out
}

// token appends the items of one token.
func token(out []item, tok string) []item {
	bare := strings.Trim(tok, "(),;:?!\"'“”[]{}")
	bare = strings.TrimSuffix(bare, ".")
	if bare == "" {
		return out
	}
	from := len(out)
	for rest := strings.ToLower(bare); rest != ""; {
		n := 0
		for n < len(rest) && (digit(rest[n]) || (rest[n] == '.' || rest[n] == ',') && n > 0 && n+1 < len(rest) && digit(rest[n+1])) {
			n++
		}
		switch {
		case n > 0:
			out = append(out, item{text: rest[:n], number: true})
		case strings.HasPrefix(rest, "°"):
			n = len("°")
		default:
			r, size := utf8.DecodeRuneInString(rest)
			if unicode.IsLetter(r) {
				n = len(rest)
				if i := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) }); i > 0 {
					n = i
				}
				break
			}
			if n = size; strings.HasPrefix(rest, "**") {
				n = 2
			}
		}
		if !digit(rest[0]) && !strings.HasPrefix(rest, "°") {
			out = append(out, item{text: rest[:n]})
		}
		rest = rest[n:]
	}
	if !sane(out[from:]) {
		return append(out[:from], item{text: strings.ToLower(bare)})
	}
	return out
}

// sane reports whether the items of a token are one word, a number with a unit, or an
// expression. Without spaces, an x joins the parts of a size.
func sane(tok []item) bool {
	if len(tok) < 2 {
		return true
	}
	if len(tok) == 2 && tok[0].number && !tok[1].number {
		_, unit := units()[tok[1].text]
		return unit || tok[1].text == "%" || tok[1].text == "!"
	}
	for i, it := range tok {
		if it.number != (i%2 == 0) || !it.number && !strings.Contains("** × · ÷ ^ + − – - /", it.text) {
			return false
		}
	}
	return len(tok)%2 == 1
}

// ambiguous reports whether an operator also joins the parts of a date or a range.
func ambiguous(op string) bool { return op == "-" || op == "–" || op == "/" }

// pure reports whether a request is only an expression, and words that ask for its value.
func pure(list []item) bool {
	for i, it := range list {
		switch it.text {
		case "calculate", "compute", "evaluate", "solve", "result", "equal", "equals", "what's", "=":
			continue
		}
		if !it.number && symbols[it.text] == "" && !isNumber(list, i) && !isStop(it.text) {
			return false
		}
		// A second separator of the same kind makes a date: 2026-01-31.
		if ambiguous(it.text) && i+2 < len(list) && list[i+2].text == it.text && list[i+2].start == it.start {
			return false
		}
	}
	return true
}

// isNumber reports whether the item at i is a number.
func isNumber(list []item, i int) bool {
	if i < 0 || i >= len(list) {
		return false
	}
	_, word := numerals[list[i].text]
	return list[i].number || word
}

// implied is what an operator or a unit of a request means: the word that stands for it,
// and words of tools for it.
type implied struct {
	word  string
	tools []string
	value bool // it is an argument
}

// reading is what the tokens of a request mean that are operators or units.
type reading struct {
	at       map[int]implied // by offset; a token whose implied is empty is part of another one
	converts bool            // the request has two units of the same quantity
}

// quantities finds the operators and the units of a request.
func quantities(text string) (r reading) {
	list := items(text)
	expression := pure(list)
	r.at = make(map[int]implied)
	mean := func(i int, word string, tools []string, parts ...int) {
		for _, p := range parts {
			r.at[list[p].start] = implied{}
		}
		r.at[list[i].start] = implied{word: word, tools: tools}
	}
	operands := func(is ...int) {
		for _, i := range is {
			if !list[i].number {
				r.at[list[i].start] = implied{}
			}
		}
	}
	said := func(i int, w string) bool { return i >= 0 && i < len(list) && list[i].text == w }
	var seen []int // the items that are units
	for i, it := range list {
		before := isNumber(list, i-1)
		switch symbol := symbols[it.text]; {
		case it.number:
		case before && symbol != "" && isNumber(list, i+1) && (!ambiguous(it.text) || expression):
			mean(i, symbol, arithmetic)
			operands(i-1, i+1)
		case before && symbol != "" && said(i+1, "by") && isNumber(list, i+2):
			mean(i, symbol, arithmetic, i+1)
			operands(i-1, i+2)
		case before && (it.text == "%" || it.text == "percent") && (said(i+1, "of") || said(i+1, "on") || said(i+1, "off")) && isNumber(list, i+2):
			mean(i, "percent", arithmetic)
		case (it.text == "square" || it.text == "cube" || it.text == "cubic") && said(i+1, "root"):
			mean(i, "sqrt", arithmetic, i+1)
		case it.text == "power" && said(i-1, "the") && said(i-2, "to"):
			mean(i, "power", arithmetic)
		case functions[it.text] != "" && (isNumber(list, i+1) || said(i+1, "of") && isNumber(list, i+2)):
			mean(i, functions[it.text], arithmetic)
		case operations[it.text] != "" && (isNumber(list, i+1) || said(i+1, "by") && isNumber(list, i+2)):
			mean(i, operations[it.text], arithmetic)
		case before && powers[it.text] != "":
			mean(i, powers[it.text], arithmetic)
		case sums[it.text] != "" && addends(list, i+1):
			mean(i, sums[it.text], arithmetic)
		default:
			_, ok := units()[it.text]
			if ok && (len(it.text) > 1 || before || len(seen) > 0) {
				seen = append(seen, i)
			}
		}
	}
	// One measurement is a value. Two of the same quantity are converted.
	first, converted := make(map[*string]string), make(map[*string]bool)
	for _, i := range seen {
		quantity, name := &units()[list[i].text][0], list[i].text
		if first[quantity] == "" {
			first[quantity] = name
		} else if first[quantity] != name {
			converted[quantity], r.converts = true, true
		}
	}
	for _, i := range seen {
		q := units()[list[i].text]
		switch {
		case converted[&q[0]]:
			mean(i, list[i].text, q)
		case isNumber(list, i-1):
			r.at[list[i].start] = implied{word: list[i].text, tools: q, value: true}
		}
	}
	return r
}

// addends reports whether a list of at least two numbers starts at i.
func addends(list []item, i int) bool {
	is := func(i int, words string) bool {
		return i < len(list) && strings.Contains(words, " "+list[i].text+" ")
	}
	for is(i, " up of the numbers between ") {
		i++
	}
	if !isNumber(list, i) {
		return false
	}
	return isNumber(list, i+1) || is(i+1, " and to with from ") && isNumber(list, i+2)
}
