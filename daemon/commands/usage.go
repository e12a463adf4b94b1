package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// maxUsageDays is how many days fit into the picture of one answer.
const maxUsageDays = 31

// daysOf reads how many days a person wants to see; 0 for what is no number of
// them.
func daysOf(words string) int {
	if words == "" {
		return 7
	}
	n, err := strconv.Atoi(strings.TrimSuffix(words, "d"))
	if err != nil || n < 1 || n > maxUsageDays {
		return 0
	}
	return n
}

func isDays(words string) bool { return daysOf(words) > 0 }

// sayUsage tells what a person used, a bar a day, and what is left of their
// budgets; the picture is for them alone.
func (d *Daemon) sayUsage(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	days := daysOf(a.Words)
	if days == 0 {
		return bots.Answer{}, fmt.Errorf("%w days %q: 1 to %d", store.ErrInvalid, brief(a.Words, 40), maxUsageDays)
	}
	u, err := d.usageOf(ctx, a, days)
	return bots.Answer{Text: u.text, Picture: u.picture}, err
}

// usageSums are the lines below the days.
func usageSums(report store.UsageReport, w phrases.Catalogue) []string {
	tokens := store.FormatAmount(store.InTokens, report.Total.Prompt+report.Total.Completion)
	out := []string{w.Say(phrases.UsageLine, w.Translate(tokens), strconv.FormatInt(report.Total.Calls, 10))}
	if report.Total.MicroUSD > 0 {
		out = append(out, w.Say(phrases.UsageCost, store.FormatAmount(store.InUSD, report.Total.MicroUSD)))
	}
	return out
}

// budgetLines say what is left of the budgets that hold for somebody.
func (d *Daemon) budgetLines(ctx context.Context, a bots.Asked) ([]string, error) {
	w, zone := phrases.For(a.Locale), zoneOf(a)
	budgets, err := d.ops.budgets.Of(ctx, a.By, "")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, b := range budgets {
		if b.Limit == 0 {
			continue
		}
		v, err := d.ops.budgets.View(ctx, b)
		if err != nil {
			return nil, err
		}
		figures := []any{w.Translate(b.Amount(b.Used)), w.Translate(b.Amount(b.Limit)), b.Resets.In(zone).Format("2006-01-02 15:04 MST")}
		if b.Subject == store.Everybody || b.Subject == "user:"+a.By.User {
			out = append(out, w.Say(phrases.UsageOwnBudget, figures...))
			continue
		}
		out = append(out, w.Say(phrases.UsageBudget, append([]any{brief(v.Name, 80)}, figures...)...))
	}
	return out, nil
}

// usageBars is the picture: a line a day, its bar as long as its tokens are
// many, the longest twenty characters.
func usageBars(report store.UsageReport, days int, w phrases.Catalogue) []string {
	most := int64(1)
	for _, r := range report.Rows {
		most = max(most, r.Prompt+r.Completion)
	}
	var lines []string
	for _, r := range report.Rows[max(0, len(report.Rows)-days):] {
		n := r.Prompt + r.Completion
		length := int(n * 20 / most)
		if n > 0 && length == 0 {
			length = 1
		}
		lines = append(lines, fmt.Sprintf("%s %s%s %s", r.Key, strings.Repeat("█", length), strings.Repeat("░", 20-length), w.Translate(store.FormatAmount(store.InTokens, n))))
	}
	return lines
}
