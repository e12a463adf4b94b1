package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"nize/store"
)

// TestAskAnswer: each field of a question is asked for, what doesn't fit is asked for
// again, and an empty line keeps the default.
func TestAskAnswer(t *testing.T) {
	card := store.Card{Args: json.RawMessage(`{"class":"y","seats":2}`), State: store.Pending, Question: &store.Question{Message: "Where to?", Schema: json.RawMessage(`{"type":"object","properties":{
		"city":{"type":"string","title":"City"},"seats":{"type":"integer"},"class":{"type":"string","oneOf":[{"const":"y","title":"Economy"},{"const":"j","title":"Business"}]},
		"extras":{"type":"array","items":{"type":"string","enum":["meal","bag"]}},"window":{"type":"boolean"},"notes":{"type":"array","items":{"type":"string"}}},"required":["city"]}`)}}
	lines := []string{"", "Rome", "many", "3", "business", "2, meal", "yes", "a, b c"}
	var prompts, said []string
	got, err := AskAnswer(card, func(prompt string) (string, error) {
		prompts = append(prompts, prompt)
		line := lines[len(prompts)-1]
		return line, nil
	}, func(line string) { said = append(said, line) })
	if want := `{"city":"Rome","class":"j","extras":["bag","meal"],"notes":["a","b c"],"seats":3,"window":true}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if len(prompts) != len(lines) || len(said) != 2 || prompts[0] != "City: " || !strings.Contains(prompts[4], "1 Economy, 2 Business") || !strings.Contains(prompts[2], "[2]") {
		t.Errorf("%q\n%q", prompts, said)
	}
	card.Question = &store.Question{Message: "Open it.", URL: "https://example.com/"}
	if got, err := AskAnswer(card, nil, nil); got != nil || err != nil {
		t.Errorf("an address: %s, %v", got, err)
	}
}
