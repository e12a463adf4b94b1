package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type textArgs struct {
	Text string `json:"text" jsonschema:"The text"`
}

type caseArgs struct {
	Text string `json:"text" jsonschema:"The text"`
	Case string `json:"case" jsonschema:"The case to write it in"`
}

func addText(s *sdk.Server) {
	add(s, about(reads, "change_case", "Change letter case", "Writes a text in another case: UPPER or lower."),
		limits{"case": func(s *jsonschema.Schema) { s.Enum = []any{"upper", "lower"} }}, func(in caseArgs) (textArgs, string, error) {
			out := strings.ToLower(in.Text)
			if in.Case == "upper" {
				out = strings.ToUpper(in.Text)
			}
			return textArgs{out}, out, nil
		})
}

type diceArgs struct {
	Dice string `json:"dice" jsonschema:"What to roll, in dice notation: 2d6+3"`
}

type diceOut struct {
	Rolls []int `json:"rolls"`
	Total int   `json:"total"`
}

var dice = regexp.MustCompile(`^(\d{0,3})[dD]([1-9]\d{0,5})([+-]\d{1,6})?$`)

func (b *toolbox) addDice(s *sdk.Server) {
	add(s, about(reads, "roll_dice", "Roll dice", "Rolls dice and adds them up. Example: 2d6+3, d20, 3d8-1."),
		limits{"dice": length(1, 40)}, func(in diceArgs) (out diceOut, text string, err error) {
			m := dice.FindStringSubmatch(strings.ReplaceAll(in.Dice, " ", ""))
			if m == nil {
				return out, "", fmt.Errorf("can't read %.60q: dice are written like 2d6+3 or d20, at most 999 of them", in.Dice)
			}
			n, _ := strconv.Atoi(m[1]) // digits, by the expression; none in d20
			sides, _ := strconv.Atoi(m[2])
			out.Total, _ = strconv.Atoi(m[3])
			for range max(n, 1) {
				out.Rolls = append(out.Rolls, b.roll(sides)+1)
				out.Total += out.Rolls[len(out.Rolls)-1]
			}
			return out, fmt.Sprintf("%s: %d %v", m[0], out.Total, out.Rolls), nil
		})
}
