package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Period is how long a budget lasts. Periods are days and months of UTC, so
// that nobody gets a new one by moving to another zone.
type Period string

const (
	Daily   Period = "daily"
	Monthly Period = "monthly"
)

// Word is the period as people read it.
func (p Period) Word() Text {
	if p == Monthly {
		return Textf("monthly")
	}
	return Textf("daily")
}

// Bounds are when the period that at falls into begins and ends.
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

// Everybody is the subject of the budget that each person has who has none of
// their own.
const Everybody = "user:*"

// Budget is what somebody may spend on models, or how often they may call some
// tools. There is one of a subject, period, unit and pattern of tools. A call
// counts when it begins to run, whatever comes of it; one that was refused, denied
// or cancelled before that does not, and nize's own tools never do.
type Budget struct {
	Subject string    `json:"subject"`        // user:ID, user:*, group:NAME, team:TEAM, model:PROVIDER/MODEL
	Tool    string    `json:"tool,omitempty"` // what is counted in calls: a pattern of tools, see [MatchTool]
	Period  Period    `json:"period"`
	Unit    Unit      `json:"unit"`
	Limit   int64     `json:"limit"` // 0 is none, which goes before that of everybody
	Set     time.Time `json:"set,omitzero"`
}

// Amount writes a number of the budget's unit for people.
func (b Budget) Amount(n int64) Text { return FormatAmount(b.Unit, n) }

// LimitText is the limit, and of which tools it is.
func (b Budget) LimitText() Text {
	switch {
	case b.Unit != InCalls:
		return b.Amount(b.Limit)
	case b.Limit == 1:
		return Textf("1 call of %s", b.Tool)
	}
	return Textf("%s calls of %s", thousands(b.Limit), b.Tool)
}

// FormatAmount writes 200,000 tokens, $5.00 or 50 calls.
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

// maxAmount keeps sums of amounts far from the end of an int64.
const maxAmount int64 = math.MaxInt64 / 1_000_000

// ParseAmount reads 200000tokens, 5usd, 2.50usd, 50calls or unlimited, which is 0
// tokens.
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

// Check says why the budget cannot be one.
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

// BudgetState is how far a budget is used.
type BudgetState struct {
	Budget
	User     string    `json:"user,omitempty"` // whose it is, where each person has one
	Used     int64     `json:"used"`
	Reserved int64     `json:"reserved"` // held by calls that run
	Resets   time.Time `json:"resets"`
}

// Warned and exhausted parts of a budget.
const warnPercent = 80

// Nearly says whether 80 % of the budget is used.
func (s BudgetState) Nearly() bool {
	return s.Limit > 0 && s.Used > 0 && s.Used*100 >= s.Limit*warnPercent // [maxAmount] leaves room for that
}

// Spent says whether all of it is.
func (s BudgetState) Spent() bool { return s.Limit > 0 && s.Used >= s.Limit }

// Name says whose budget it is, to the person who is refused or warned. What is
// behind a model's name is for admins.
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

// ResetText says when a budget begins again, in a person's zone.
func (s BudgetState) ResetText(zone *time.Location) Text {
	return Textf("It resets on %s (%s).", Moment{Time: s.Resets.In(zone)}, zone.String())
}

// UsedUp is what a person is told whom a budget refuses that is used up.
func (s BudgetState) UsedUp(forAdmin bool, zone *time.Location) Text {
	return Textf("%s is used up. %s An admin can raise it.", s.Name(forAdmin), s.ResetText(zone))
}

// BudgetError refuses a call of a model or a tool that a budget cannot cover.
type BudgetError struct {
	BudgetState
	// Unpriced is the model whose price must be known for a budget in money,
	// and is not.
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

// Reservation is what a model call may come to, held while it runs.
type Reservation struct {
	// Spend is what is booked if nized dies before the answer: the call with
	// its estimated prompt. Its ID is that of the call's later Spend.
	Spend Spend `json:"spend"`
	// Tokens and MicroUSD are the most that the call is expected to come to.
	Tokens   int64 `json:"tokens"`
	MicroUSD int64 `json:"micro_usd"`
	// UserDaily is the setting budgets.user.daily: tokens of each person who
	// has no such budget of their own; 0 is none.
	UserDaily int64 `json:"user_daily,omitempty"`
	// Exempt leaves out the budgets of people, groups and teams: an admin, where
	// budgets.admins is off.
	Exempt bool `json:"exempt,omitempty"`
	// Tool is set for a call of that tool (server:tool) in place of one of a model.
	// Nothing is held for it: it counts at once. [OfAnything] asks for the budgets
	// of both kinds.
	Tool string `json:"tool,omitempty"`
}

// OfAnything stands for all models and tools.
const OfAnything = "*"

// Budgets keeps what may be spent.
type Budgets interface {
	// PutBudget stores a budget in place of the one of its subject, period, unit
	// and tool. ErrNotFound if its user or group is not there.
	PutBudget(ctx context.Context, by Caller, b Budget) error
	DeleteBudget(ctx context.Context, by Caller, b Budget) error
	// ListBudgets returns all with their use, by subject; that of everybody has
	// none.
	ListBudgets(ctx context.Context) ([]BudgetState, error)
	// BudgetsFor returns those that a call as in r would count for.
	BudgetsFor(ctx context.Context, r Reservation) ([]BudgetState, error)
}

// Meter holds capacity in budgets while model calls run. What is used,
// and what calls that run have reserved, is looked at in the transaction that
// reserves, so calls at once exceed a budget by one of them at most, as far as
// none comes to more than it reserved.
type Meter interface {
	// Reserve holds capacity for a call of a model, or counts one of a tool. A
	// [*BudgetError] where there is none. For a call of a tool it appends
	// budget.warned and budget.exceeded.
	Reserve(ctx context.Context, by Caller, r Reservation) error
	// SettleSpend books the call in place of its reservation, if it has one, at the
	// store's own time, and returns the budgets of which 80 % or all are used
	// up with it for the first time in their period. It appends budget.warned
	// and budget.exceeded.
	SettleSpend(ctx context.Context, by Caller, s Spend) ([]BudgetState, error)
	// Release gives back what a call reserved that came to nothing.
	Release(ctx context.Context, id string) error
	// SettleAbandoned books what was reserved by a nized that died, and returns
	// how many calls those were. It is called before the first Reserve.
	SettleAbandoned(ctx context.Context) (int, error)
}
