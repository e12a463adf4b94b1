package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type calcArgs struct {
	Expression string `json:"expression" jsonschema:"Expression, e.g. (19.99 * 3 + 4.50) * 1.081 or 2^10 or 200 + 15% * 200"`
}

type calcOut struct {
	Result float64 `json:"result"`
	Exact  bool    `json:"exact" jsonschema:"false if the result was rounded to 15 digits"`
}

func addCalculator(s *sdk.Server) {
	add(s, about(reads, "calculate", "Calculate", "Computes an arithmetic expression to 15 digits. Knows + - * / % ^ !, brackets, percent, pi, e, sqrt, cbrt, abs, round(x, decimals), floor, ceil, trunc, min, max, exp, ln, log (base 10), log2, sin, cos, tan (radians)."),
		limits{"expression": length(1, 1000)}, func(in calcArgs) (calcOut, string, error) {
			result, err := evaluate(in.Expression)
			if err != nil {
				return calcOut{}, "", err
			}
			text, exact := decimal(result)
			return calcOut{result, exact}, strings.TrimSpace(in.Expression) + " " + text, nil
		})
}

// Notations that people use and expr does not parse: signs, percent (not the remainder,
// which a number follows), factorials, 2(3+4) and 2pi.
var (
	signs     = strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", "–", "-", "²", "^2", "³", "^3", "π", "pi")
	percent   = regexp.MustCompile(`(\d[\d.]*)\s*%(\s*(?:$|[-+*/^),]))`)
	factorial = regexp.MustCompile(`(\d+)\s*!`)
	implied   = regexp.MustCompile(`(^|[^\w.])([\d.]+|\))\s*(\(|pi\b|sqrt\b)`)
)

var names = map[string]any{
	"pi": math.Pi, "e": math.E, "tau": 2 * math.Pi,
	"sqrt": math.Sqrt, "cbrt": math.Cbrt, "exp": math.Exp, "ln": math.Log, "log": math.Log10, "log10": math.Log10, "log2": math.Log2,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"trunc": math.Trunc,
	"fact":  func(n float64) float64 { return math.Round(math.Gamma(n + 1)) },
	"mod":   func(x, y float64) float64 { return x - y*math.Floor(x/y) }, // the sign of the divisor, as on calculators
	"round": func(x float64, places ...float64) float64 {
		scale := math.Pow(10, append(places, 0)[0])
		return math.Round(x*scale) / scale
	},
}

// floats converts integers to doubles, because integers would wrap around at 2^63.
type floats struct{}

func (floats) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.FloatNode{Value: float64(n.Value)})
	case *ast.BinaryNode:
		if n.Operator == "%" {
			ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: "mod"}, Arguments: []ast.Node{n.Left, n.Right}})
		}
	}
}

func evaluate(s string) (float64, error) {
	s = factorial.ReplaceAllString(percent.ReplaceAllString(signs.Replace(s), "($1/100)$2"), "fact($1)")
	program, err := expr.Compile(implied.ReplaceAllString(s, "$1$2*$3"), expr.Env(names), expr.Patch(floats{}), expr.AsFloat64())
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return 0, fmt.Errorf("can't read the expression: %s; write numbers, + - * / %% ^ ! ( ) and functions such as sqrt(2)", first)
	}
	out, err := expr.Run(program, names)
	result, ok := out.(float64)
	if err != nil || !ok || math.IsNaN(result) || math.IsInf(result, 0) {
		return 0, fmt.Errorf("the result is no finite number: %w", cmp.Or(err, errors.New("a division by zero, the root of a negative number, or more than 308 digits")))
	}
	return result, nil
}

// decimal returns "= 0.3" with 15 significant digits, or "≈ 0.333333333333333". If 12
// digits are enough, the rest is rounding noise of binary fractions.
func decimal(f float64) (text string, exact bool) {
	text = fmt.Sprintf("%.15g", f)
	if math.Abs(f) < 1e15 && (f == math.Trunc(f) || fmt.Sprintf("%.12g", f) == text) {
		return "= " + text, true
	}
	return "≈ " + text, false
}
