package llm

import (
	"regexp"
	"strings"
)

// PricesAsOf dates the table below, for reports. Prices change; what is not in it counts as
// unknown, never as zero (SPEC 17).
const PricesAsOf = "2026-01"

// price is in US dollars per million tokens, as published by the provider for
// its standard tier.
type price struct {
	in, cached, out float64
}

// prices by kind of provider and model, without the date that a model's name
// may end in.
var prices = map[string]map[string]price{
	"openai": {
		"gpt-5": {1.25, 0.125, 10}, "gpt-5-mini": {0.25, 0.025, 2}, "gpt-5-nano": {0.05, 0.005, 0.4},
		"gpt-4.1": {2, 0.5, 8}, "gpt-4.1-mini": {0.4, 0.1, 1.6}, "gpt-4.1-nano": {0.1, 0.025, 0.4},
		"gpt-4o": {2.5, 1.25, 10}, "gpt-4o-mini": {0.15, 0.075, 0.6},
		"o3": {2, 0.5, 8}, "o4-mini": {1.1, 0.275, 4.4},
		"text-embedding-3-small": {0.02, 0.02, 0}, "text-embedding-3-large": {0.13, 0.13, 0},
	},
	"deepseek": {
		"deepseek-chat": {0.28, 0.028, 0.42}, "deepseek-reasoner": {0.28, 0.028, 0.42},
	},
	"groq": {
		"llama-3.3-70b-versatile": {0.59, 0.59, 0.79}, "llama-3.1-8b-instant": {0.05, 0.05, 0.08},
	},
}

// dated is the release date at the end of a model's name.
var dated = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)

// Price is what u cost with a model (its provider's own name) of a provider of
// that kind, in millionths of a dollar. known is false where no price is known.
func Price(kind, model string, u Usage) (microUSD int64, known bool) {
	if u.Priced {
		return u.MicroUSD, true
	}
	if kind == Offline || kind == "ollama" {
		return 0, true // runs on one's own machine
	}
	p, ok := prices[kind][dated.ReplaceAllString(strings.ToLower(model), "")]
	if !ok {
		return 0, false
	}
	fresh := max(u.Prompt-u.Cached, 0)
	return int64(float64(fresh)*p.in + float64(u.Cached)*p.cached + float64(u.Completion)*p.out + 0.5), true
}
