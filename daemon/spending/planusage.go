package spending

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nize/mcp/native"
	"nize/store"
	"nize/store/plan"
)

//go:embed get-plan-usage.html
var planUsageTemplate string

// PlanUsage is the usage of one user.
type PlanUsage struct {
	Enabled bool        // plans are in use
	Plan    *plan.Usage // nil if no plan applies to them
	Credits *float64    // remaining credits; nil if the plan has none
	Budgets []store.BudgetState
	Names   map[string]string // display names of the budgets' subjects
}

// planUsageResult is the structured result. Missing values are null.
type planUsageResult struct {
	PlanName       string        `json:"planName"`
	PlanID         *string       `json:"planId,omitempty"`
	BillingContext *string       `json:"billingContext,omitempty"`
	MessagesUsed   int64         `json:"messagesUsed"`
	MessageLimit   *int64        `json:"messageLimit"`
	Credits        *float64      `json:"credits"`
	CreditUnit     string        `json:"creditUnit,omitempty"` // USD, or the plan's own unit
	PeriodEnd      *string       `json:"periodEnd,omitempty"`
	Budgets        []budgetUsage `json:"budgets,omitempty"`
}

type budgetUsage struct {
	Subject string       `json:"subject"`
	Period  store.Period `json:"period"`
	Unit    store.Unit   `json:"unit"`
	Tool    string       `json:"tool,omitempty"`
	Limit   float64      `json:"limit"` // money in US dollars
	Used    float64      `json:"used"`
	Resets  string       `json:"resets"`
}

// PlanUsageTool returns get-plan-usage, which uses read to get the caller's usage.
func PlanUsageTool(read func(context.Context, native.Context) (PlanUsage, error)) native.Tool {
	yes, no := true, false
	return native.Tool{
		Name: "get-plan-usage", Title: "What I may use",
		Description: "Get the current user's plan information and usage statistics.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"required":[]}`),
		Annotations: store.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Private:     true,
		Template:    planUsageTemplate,
		Run: func(ctx context.Context, c native.Context, _ json.RawMessage) (native.Result, error) {
			u, err := read(ctx, c)
			if err != nil {
				return native.Result{}, err
			}
			return u.result(c)
		},
	}
}

func (u PlanUsage) result(c native.Context) (native.Result, error) {
	out, text := planUsageResult{PlanName: "Free"}, "Payments are not enabled."
	if u.Enabled {
		if c.User == "" {
			return native.Failed("User not authenticated."), nil
		}
		if u.Plan == nil {
			return native.Failed("Unable to retrieve billing info."), nil
		}
		whose, ends := u.Plan.Context(), u.Plan.Ends.UTC().Format(time.RFC3339)
		out = planUsageResult{PlanName: u.Plan.Plan.Name, PlanID: &u.Plan.Plan.ID, BillingContext: &whose, MessagesUsed: u.Plan.Used, MessageLimit: u.Plan.Plan.Messages, Credits: u.Credits, PeriodEnd: &ends}
		if u.Credits != nil {
			out.CreditUnit = u.Plan.Plan.CreditUnit()
		}
		limit := "unlimited"
		if out.MessageLimit != nil {
			limit = fmt.Sprint(*out.MessageLimit)
		}
		text = fmt.Sprintf("Plan: %s\nMessages: %d/%s", out.PlanName, out.MessagesUsed, limit)
	}
	r := native.Text(text)
	var lines []string
	if out.Credits != nil {
		lines = append(lines, "Credits: "+strconv.FormatFloat(*out.Credits, 'f', -1, 64)+" "+out.CreditUnit+" left")
	}
	for _, b := range u.Budgets {
		if b.Limit == 0 {
			continue // unlimited
		}
		resets := b.Resets.UTC().Format(time.RFC3339)
		name, in := cmp.Or(u.Names[b.Subject], b.Subject), 1.0
		if b.Unit == store.InUSD {
			in = 1e6
		}
		out.Budgets = append(out.Budgets, budgetUsage{name, b.Period, b.Unit, b.Tool, float64(b.Limit) / in, float64(b.Used) / in, resets})
		lines = append(lines, fmt.Sprintf("Budget: %s of %s used (%s), resets %s", b.Amount(b.Used), b.LimitText(), b.Period, resets))
	}
	if len(lines) > 0 {
		r.Content = append(r.Content, native.Content{Type: "text", Text: strings.Join(lines, "\n")})
	}
	var err error
	r.StructuredContent, err = json.Marshal(out)
	return r, err
}
