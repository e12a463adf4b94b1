package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/daemon/plot"
	"nize/store"
)

// maxUsageDays is how many days one answer's picture can show.
const maxUsageDays = 31

// daysOf parses a number of days; 0 if it is not one.
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

// sayUsage returns a person's usage, with a bar per day, and the rest of their budgets; the
// picture is visible to them only.
func (cmd *Commands) sayUsage(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	days := daysOf(a.Words)
	if days == 0 {
		return bots.Answer{}, store.Errorf("%w days %q: 1 to %d", store.ErrInvalid, bots.Brief(a.Words, 40), maxUsageDays)
	}
	u, err := cmd.usageOf(ctx, a, days)
	return bots.Answer{Text: u.text, Picture: u.picture}, err
}

// usageSums returns the lines below the days.
func usageSums(report store.UsageReport, w phrases.Catalogue) []string {
	tokens := store.FormatAmount(store.InTokens, report.Total.Prompt+report.Total.Completion)
	out := []string{w.Say(phrases.UsageLine, tokens, strconv.FormatInt(report.Total.Calls, 10))}
	if report.Total.MicroUSD > 0 {
		out = append(out, w.Say(phrases.UsageCost, store.FormatAmount(store.InUSD, report.Total.MicroUSD)))
	}
	return out
}

// budgetLines returns the rest of the budgets that apply to a person.
func (cmd *Commands) budgetLines(ctx context.Context, a bots.Asked) ([]string, error) {
	w, zone := phrases.For(a.Locale), zoneOf(a)
	budgets, err := cmd.Budgets.Of(ctx, a.By, "")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, b := range budgets {
		if b.Limit == 0 {
			continue
		}
		v, err := cmd.Budgets.View(ctx, b)
		if err != nil {
			return nil, err
		}
		figures := []any{b.Amount(b.Used), b.LimitText(), b.Resets.In(zone).Format("2006-01-02 15:04 MST")}
		if b.Subject == store.Everybody || b.Subject == "user:"+a.By.User {
			out = append(out, w.Say(phrases.UsageOwnBudget, figures...))
			continue
		}
		out = append(out, w.Say(phrases.UsageBudget, append([]any{bots.Brief(v.Name, 80)}, figures...)...))
	}
	return out, nil
}

// usageBars returns the picture as text: a line per day, with a bar proportional to its
// tokens; the longest has twenty characters.
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
		lines = append(lines, fmt.Sprintf("%s %s%s %s", r.Key, strings.Repeat("█", length), strings.Repeat("░", 20-length), w.Text(store.FormatAmount(store.InTokens, n))))
	}
	return lines
}

// used is a person's usage as text and as a picture.
type used struct {
	text    string // with a bar per day
	brief   string // without the days
	picture *bots.Picture
}

// usageOf sums a person's usage in the last days of their time zone, and returns it with
// the rest of their budgets.
func (cmd *Commands) usageOf(ctx context.Context, a bots.Asked, days int) (used, error) {
	w, zone := phrases.For(a.Locale), zoneOf(a)
	y, m, day := cmd.Now().In(zone).Date()
	first := time.Date(y, m, day-days+1, 0, 0, 0, 0, zone)
	report, err := cmd.Usage.Get(ctx, a.By, api.GetUsageRequest{By: "day", Since: first, User: a.By.User, Zone: zone.String()})
	if err != nil {
		return used{}, err
	}
	left, err := cmd.budgetLines(ctx, a)
	if err != nil {
		return used{}, err
	}
	var u used
	if report.Total.Calls == 0 {
		u.brief = strings.Join(append([]string{w.Say(phrases.UsageNone, fmt.Sprint(days))}, left...), "\n")
		u.text = u.brief
		return u, nil
	}
	sums := usageSums(report, w)
	head := w.Say(phrases.UsageHead, fmt.Sprint(days))
	u.brief = strings.Join(slices.Concat(sums, left), "\n")
	u.text = strings.Join(slices.Concat([]string{head}, usageBars(report, days, w), sums, left), "\n")
	if report.Total.Prompt+report.Total.Completion+report.Total.MicroUSD == 0 { // the planner uses no tokens
		return u, nil
	}
	drawn := everyDay(report.Rows, first, days)
	u.picture = &bots.Picture{Name: "usage.png", Alt: strings.Join(append([]string{head}, dayLines(drawn, w)...), "\n"), Key: keyOf(drawn), Draw: func() ([]byte, error) { return plot.PNG(drawn) }}
	return u, nil
}

// everyDay returns the days of a report, including those without usage.
func everyDay(rows []store.UsageRow, first time.Time, days int) []plot.Day {
	out := make([]plot.Day, days)
	for i := range out {
		out[i].Date = first.AddDate(0, 0, i).Format(time.DateOnly)
		if n := slices.IndexFunc(rows, func(r store.UsageRow) bool { return r.Key == out[i].Date }); n >= 0 {
			out[i].Tokens, out[i].MicroUSD = rows[n].Prompt+rows[n].Completion, rows[n].MicroUSD
		}
	}
	return out
}

// keyOf returns a key that is equal for days with the same picture.
func keyOf(days []plot.Day) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v", days))
	return hex.EncodeToString(sum[:8])
}

// dayLines describes a picture in text.
func dayLines(days []plot.Day, w phrases.Catalogue) []string {
	var lines []string
	for _, day := range days {
		line := day.Date + ": " + w.Text(store.FormatAmount(store.InTokens, day.Tokens))
		if day.MicroUSD > 0 {
			line += w.Say(phrases.Comma) + store.FormatAmount(store.InUSD, day.MicroUSD).String()
		}
		lines = append(lines, line)
	}
	return lines
}
