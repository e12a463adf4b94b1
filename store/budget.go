package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Period is the length of a budget. Periods are days and months of UTC, so changing time
// zones never starts a new one.
type Period string

const (
	Daily   Period = "daily"
	Monthly Period = "monthly"
)

// Word returns the period as shown to people.
func (p Period) Word() Text {
	if p == Monthly {
		return Textf("monthly")
	}
	return Textf("daily")
}

// Bounds returns the start and end of the period that contains at.
func (p Period) Bounds(at time.Time) (from, to time.Time) {
	y, m, d := at.UTC().Date()
	if p == Monthly {
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// Unit is what a budget counts: tokens of prompts and answers, money in
// millionths of a US dollar, or calls of tools.
type Unit string

const (
	InTokens Unit = "tokens"
	InUSD    Unit = "usd"
	InCalls  Unit = "calls"
)

// Everybody is the subject of the default budget: it applies to each person who has no
// budget of their own.
const Everybody = "user:*"

// Budget limits what a subject may spend on models, or how often it may call certain tools.
// There is one per subject, period, unit and tool pattern. A call counts when it begins to
// run, whatever its outcome; a call that was refused, denied or cancelled before that does
// not count, and neither do nize's own tools.
type Budget struct {
	Subject string    `json:"subject"`        // user:ID, user:*, group:NAME, team:TEAM, model:PROVIDER/MODEL
	Tool    string    `json:"tool,omitempty"` // for a budget in calls: a tool pattern, see [MatchTool]
	Period  Period    `json:"period"`
	Unit    Unit      `json:"unit"`
	Limit   int64     `json:"limit"` // 0 is unlimited, which overrides the default budget
	Set     time.Time `json:"set,omitzero"`
}

// Amount formats an amount in the budget's unit.
func (b Budget) Amount(n int64) Text { return FormatAmount(b.Unit, n) }

// LimitText returns the limit and the tools that it applies to.
func (b Budget) LimitText() Text {
	switch {
	case b.Unit != InCalls:
		return b.Amount(b.Limit)
	case b.Limit == 1:
		return Textf("1 call of %s", b.Tool)
	}
	return Textf("%s calls of %s", thousands(b.Limit), b.Tool)
}

// FormatAmount formats an amount: 200,000 tokens, $5.00 or 50 calls.
func FormatAmount(u Unit, n int64) Text {
	if u == InUSD {
		return Plain(fmt.Sprintf("$%.2f", float64(n)/1e6))
	}
	switch {
	case u == InCalls && n == 1:
		return Textf("1 call")
	case u == InCalls:
		return Textf("%s calls", thousands(n))
	}
	return Textf("%s tokens", thousands(n))
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// maxAmount keeps sums of amounts from overflowing an int64.
const maxAmount int64 = math.MaxInt64 / 1_000_000

// ParseAmount parses 200000tokens, 5usd, 2.50usd, 50calls or unlimited, which it returns as
// 0 tokens.
func ParseAmount(text string) (Unit, int64, error) {
	if text == "unlimited" {
		return InTokens, 0, nil
	}
	bad := fmt.Errorf("%w amount %q: write 200000tokens, 5usd, 50calls or unlimited", ErrInvalid, text)
	for _, unit := range []Unit{InTokens, InCalls} {
		number, ok := strings.CutSuffix(text, string(unit))
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > maxAmount {
			return "", 0, bad
		}
		return unit, n, nil
	}
	if number, ok := strings.CutSuffix(text, string(InUSD)); ok {
		usd, err := strconv.ParseFloat(number, 64)
		if err != nil || !(usd >= 1e-6 && usd <= float64(maxAmount)/1e6) {
			return "", 0, bad
		}
		return InUSD, int64(math.Round(usd * 1e6)), nil
	}
	return "", 0, bad
}

// Check returns an error if the budget is invalid.
func (b Budget) Check() error {
	kind, name, _ := strings.Cut(b.Subject, ":")
	switch kind {
	case "user", "group", "team", "model":
	default:
		return fmt.Errorf("%w subject %q: write user:NAME, user:*, project:NAME, group:NAME, team:TEAM or model:PROVIDER/MODEL", ErrInvalid, b.Subject)
	}
	switch {
	case name == "":
		return fmt.Errorf("%w subject %q: say which %s", ErrInvalid, b.Subject, kind)
	case b.Tool == "" && b.Unit == InCalls:
		return fmt.Errorf("%w budget: calls are of tools, say which: --tool PATTERN, or --tool '*' for all", ErrInvalid)
	case b.Tool != "" && b.Unit != InCalls:
		return fmt.Errorf("%w budget of tools: it is counted in calls, such as 50calls", ErrInvalid)
	case b.Tool != "" && kind != "user" && kind != "group":
		return fmt.Errorf("%w subject %q: calls of tools are counted for user:NAME, user:* and group:NAME", ErrInvalid, b.Subject)
	case b.Tool != "" && b.Tool != "*" && (!strings.Contains(b.Tool, ":") || strings.Contains(strings.TrimSuffix(b.Tool, "*"), "*")):
		return fmt.Errorf("%w tool %q: write SERVER:TOOL, SERVER:* or *", ErrInvalid, b.Tool)
	case b.Period != Daily && b.Period != Monthly:
		return fmt.Errorf("%w period %q: want daily or monthly", ErrInvalid, b.Period)
	case b.Unit != InTokens && b.Unit != InUSD && b.Unit != InCalls:
		return fmt.Errorf("%w unit %q: want tokens, usd or calls", ErrInvalid, b.Unit)
	case b.Limit < 0 || b.Limit > maxAmount:
		return fmt.Errorf("%w limit %d: want 0 to %d", ErrInvalid, b.Limit, maxAmount)
	}
	return nil
}

// BudgetState is a budget and its use.
type BudgetState struct {
	Budget
	User     string    `json:"user,omitempty"` // the person, if each person has one
	Used     int64     `json:"used"`
	Reserved int64     `json:"reserved"` // reserved by running calls
	Resets   time.Time `json:"resets"`
}

// The part of a budget at which people are warned.
const warnPercent = 80

// Nearly reports whether at least 80 % of the budget is used.
func (s BudgetState) Nearly() bool {
	return s.Limit > 0 && s.Used > 0 && s.Used*100 >= s.Limit*warnPercent // no overflow: see [maxAmount]
}

// Spent reports whether all of the budget is used.
func (s BudgetState) Spent() bool { return s.Limit > 0 && s.Used >= s.Limit }

// Name returns whose budget it is, for the person who is refused or warned. Only admins see
// the provider's model behind a model name.
func (s BudgetState) Name(forAdmin bool) Text {
	kind, name, _ := strings.Cut(s.Subject, ":")
	switch {
	case kind == "user":
		return Textf("Your %s budget of %s", s.Period.Word(), s.LimitText())
	case kind == "model" && !forAdmin:
		return Textf("The %s budget of the model (%s)", s.Period.Word(), s.LimitText())
	}
	word := Plain(kind)
	switch kind {
	case "group":
		word = Textf("group")
	case "team":
		word = Textf("team")
	case "model":
		word = Textf("model")
	}
	return Textf("The %s budget of %s %s (%s)", s.Period.Word(), word, name, s.LimitText())
}

// ResetText returns when the budget's next period begins, in a person's zone.
func (s BudgetState) ResetText(zone *time.Location) Text {
	return Textf("It resets on %s (%s).", Moment{Time: s.Resets.In(zone)}, zone.String())
}

// UsedUp returns the message for a person whose call was refused because the budget is used
// up.
func (s BudgetState) UsedUp(forAdmin bool, zone *time.Location) Text {
	return Textf("%s is used up. %s An admin can raise it.", s.Name(forAdmin), s.ResetText(zone))
}

// BudgetError refuses a call of a model or a tool that exceeds a budget.
type BudgetError struct {
	BudgetState
	// Unpriced is the model whose price is unknown, if a budget in money needs it.
	Unpriced string
}

func (e *BudgetError) Error() string {
	if e.Unpriced != "" {
		return fmt.Sprintf("%s budget of %s: %v: the price of %s is unknown; set it: nizectl models price %s --in USD --out USD", e.Period, e.Subject, ErrRefused, e.Unpriced, e.Unpriced)
	}
	if e.Unit == InCalls {
		return fmt.Sprintf("%s budget of %s: %v: all of %s used; it resets %s", e.Period, e.Subject, ErrRefused, e.LimitText(), e.Resets.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s budget of %s: %v: %s of %s used, %s held by running calls; it resets %s", e.Period, e.Subject, ErrRefused,
		e.Amount(e.Used), e.Amount(e.Limit), e.Amount(e.Reserved), e.Resets.Format(time.RFC3339))
}

func (e *BudgetError) Unwrap() error { return ErrRefused }

// Reservation is the expected cost of a model call, reserved while the call runs.
type Reservation struct {
	// Spend is booked if nized crashes before the model answers: the call with its
	// estimated prompt. The call's later Spend has the same ID.
	Spend Spend `json:"spend"`
	// Tokens and MicroUSD are the most that the call is expected to cost.
	Tokens   int64 `json:"tokens"`
	MicroUSD int64 `json:"micro_usd"`
	// UserDaily is the setting budgets.user.daily: the tokens of each person without such a
	// budget of their own; 0 is unlimited.
	UserDaily int64 `json:"user_daily,omitempty"`
	// Exempt skips the budgets of people, groups and teams. It is set for admins if
	// budgets.admins is off.
	Exempt bool `json:"exempt,omitempty"`
	// Tool is set for a call of that tool (server:tool) instead of a model. Nothing is
	// reserved for it: it counts at once. [OfAnything] selects the budgets of both kinds.
	Tool string `json:"tool,omitempty"`
}

// OfAnything stands for all models and tools.
const OfAnything = "*"

// Budgets stores budgets.
type Budgets interface {
	// PutBudget stores a budget and replaces the one with the same subject, period, unit
	// and tool. It returns ErrNotFound if the user or group doesn't exist.
	PutBudget(ctx context.Context, by Caller, b Budget) error
	DeleteBudget(ctx context.Context, by Caller, b Budget) error
	// ListBudgets returns all budgets with their use, by subject. The default budget has no
	// use of its own.
	ListBudgets(ctx context.Context) ([]BudgetState, error)
	// BudgetsFor returns the budgets that a call as in r would count for.
	BudgetsFor(ctx context.Context, r Reservation) ([]BudgetState, error)
	// NearlyUsedDefaults returns the budgets of [Everybody], and that of userDaily tokens a
	// day, of each person who has used at least 80 % of one and has no such budget of their
	// own. They include users who were removed. It reads all people in one transaction.
	NearlyUsedDefaults(ctx context.Context, userDaily int64) ([]BudgetState, error)
}

// Meter reserves capacity in budgets while model calls run. Reserve checks the used and
// reserved amounts in its own transaction, so concurrent calls exceed a budget by at most
// one call, provided that no call costs more than it reserved.
type Meter interface {
	// Reserve reserves capacity for a call of a model, or counts a call of a tool. It
	// returns a [*BudgetError] if a budget is used up. For a call of a tool it appends
	// budget.warned and budget.exceeded.
	Reserve(ctx context.Context, by Caller, r Reservation) error
	// SettleSpend books the call in place of its reservation, if it has one, at the store's
	// own time. It returns the budgets that this call brought to 80 % or 100 % for the
	// first time in their period, and appends budget.warned and budget.exceeded.
	SettleSpend(ctx context.Context, by Caller, s Spend) ([]BudgetState, error)
	// Release returns the reservation of a call that cost nothing.
	Release(ctx context.Context, id string) error
	// SettleAbandoned books the reservations of a nized that crashed and returns their
	// number. It is called before the first Reserve.
	SettleAbandoned(ctx context.Context) (int, error)
}
