package llm

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// TokenPrice is what a model costs, in US dollars per million tokens.
type TokenPrice struct {
	In     float64     `json:"in"`
	Cached float64     `json:"cached"`
	Out    float64     `json:"out"`
	Above  *PriceAbove `json:"above,omitempty"`
}

// PriceAbove is the price of a call whose prompt has more than so many tokens.
type PriceAbove struct {
	Tokens int64   `json:"tokens"`
	In     float64 `json:"in"`
	Cached float64 `json:"cached"`
	Out    float64 `json:"out"`
}

// pricesJSON has what providers published, with its date, its sources and what
// it doesn't cover. What is not in it counts as unknown, never as zero.
//
//go:embed prices.json
var pricesJSON []byte

type priceTable struct {
	AsOf       string                           `json:"as_of"`
	AsOfKind   map[string]string                `json:"as_of_kind"` // of kinds that were read later
	Unit       string                           `json:"unit"`
	Sources    []string                         `json:"sources"`
	Exceptions []string                         `json:"exceptions"`
	Prices     map[string]map[string]TokenPrice `json:"prices"` // by kind of provider and model
}

// prices is read when the first price is asked for.
var prices = sync.OnceValue(func() priceTable {
	var t priceTable
	d := json.NewDecoder(bytes.NewReader(pricesJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		panic(fmt.Sprintf("prices.json: %v", err)) // it is ours, and a test reads it
	}
	return t
})

// PricesAsOf is the month of the built-in prices of a kind of provider.
func PricesAsOf(kind string) string { return cmp.Or(prices().AsOfKind[kind], prices().AsOf) }

// dated is the release date at the end of a model's name.
var dated = regexp.MustCompile(`-\d{4}-?\d{2}-?\d{2}$`)

// IsFree says whether models of that kind of provider run on one's own machine
// and cost nothing.
func IsFree(kind string) bool { return kind == Offline || kind == "ollama" }

// PricesOf says whether the table has prices of that kind of provider.
func PricesOf(kind string) bool {
	_, ok := prices().Prices[kind]
	return ok || kind == "azure"
}

// TablePrice is the built-in price of a model (its provider's own name) of a
// provider of that kind. A release is priced as its model where it has no price
// of its own; a deployment at Azure as the model it is named after.
func TablePrice(kind, model string) (TokenPrice, bool) {
	if kind == "azure" {
		kind = "openai"
	}
	model = strings.ToLower(model)
	of := prices().Prices[kind]
	if p, ok := of[model]; ok {
		return p, true
	}
	p, ok := of[dated.ReplaceAllString(model, "")]
	return p, ok
}

// Cost is what u costs at that price, in millionths of a dollar.
func (p TokenPrice) Cost(u Usage) int64 {
	in, cached, out := p.In, p.Cached, p.Out
	if p.Above != nil && u.Prompt > p.Above.Tokens {
		in, cached, out = p.Above.In, p.Above.Cached, p.Above.Out
	}
	hit := min(max(u.Cached, 0), u.Prompt)
	return int64(float64(u.Prompt-hit)*in + float64(hit)*cached + float64(u.Completion)*out + 0.5)
}
