package spending

import (
	"context"
	"testing"
	"time"

	"nize/mcp/native"
	"nize/store"
	"nize/store/plan"
)

func TestPlanUsage(t *testing.T) {
	ten, left := int64(10), 1.25
	pro := &plan.Usage{Plan: plan.Plan{ID: "pro", Name: "Pro", Messages: &ten}, Subject: "team:local", Used: 4, Ends: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
	open := &plan.Usage{Plan: plan.Plan{ID: "open", Name: "Open"}, Subject: "user:u", Used: 4, Ends: pro.Ends}
	budget := store.BudgetState{Budget: store.Budget{Subject: "user:*", Period: store.Daily, Unit: store.InTokens, Limit: 200_000}, Used: 1200, Resets: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}
	own := &plan.Usage{Plan: plan.Plan{ID: "own", Name: "Own", Credits: 500, CreditName: "AI credits", CreditUSD: 0.01}, Subject: "user:u", Used: 4, Ends: pro.Ends}
	money := store.BudgetState{Budget: store.Budget{Subject: "user:01K", Period: store.Monthly, Unit: store.InUSD, Limit: 5_000_000}, Used: 1_250_000, Resets: budget.Resets}
	for name, one := range map[string]struct {
		is         PlanUsage
		user       string
		failed     bool
		text       string
		structured string
	}{
		"no plans":  {PlanUsage{}, "u", false, "Payments are not enabled.", `{"planName":"Free","messagesUsed":0,"messageLimit":null,"credits":null}`},
		"nobody":    {PlanUsage{Enabled: true}, "", true, "User not authenticated.", ""},
		"none":      {PlanUsage{Enabled: true}, "u", true, "Unable to retrieve billing info.", ""},
		"a plan":    {PlanUsage{Enabled: true, Plan: pro, Credits: &left}, "u", false, "Plan: Pro\nMessages: 4/10", `{"planName":"Pro","planId":"pro","billingContext":"team","messagesUsed":4,"messageLimit":10,"credits":1.25,"creditUnit":"USD","periodEnd":"2026-12-01T00:00:00Z"}`},
		"own unit":  {PlanUsage{Enabled: true, Plan: own, Credits: &left}, "u", false, "Plan: Own\nMessages: 4/unlimited", `{"planName":"Own","planId":"own","billingContext":"user","messagesUsed":4,"messageLimit":null,"credits":1.25,"creditUnit":"AI credits","periodEnd":"2026-12-01T00:00:00Z"}`},
		"money":     {PlanUsage{Budgets: []store.BudgetState{money}, Names: map[string]string{"user:01K": "Mia"}}, "u", false, "Payments are not enabled.", `{"planName":"Free","messagesUsed":0,"messageLimit":null,"credits":null,"budgets":[{"subject":"Mia","period":"monthly","unit":"usd","limit":5,"used":1.25,"resets":"2026-11-24T00:00:00Z"}]}`},
		"unlimited": {PlanUsage{Enabled: true, Plan: open}, "u", false, "Plan: Open\nMessages: 4/unlimited", `{"planName":"Open","planId":"open","billingContext":"user","messagesUsed":4,"messageLimit":null,"credits":null,"periodEnd":"2026-12-01T00:00:00Z"}`},
		"a budget":  {PlanUsage{Budgets: []store.BudgetState{budget}}, "u", false, "Payments are not enabled.", `{"planName":"Free","messagesUsed":0,"messageLimit":null,"credits":null,"budgets":[{"subject":"user:*","period":"daily","unit":"tokens","limit":200000,"used":1200,"resets":"2026-11-24T00:00:00Z"}]}`},
	} {
		r, err := PlanUsageTool(func(context.Context, native.Context) (PlanUsage, error) { return one.is, nil }).Run(t.Context(), native.Context{User: one.user}, []byte(`{}`))
		if err != nil || r.IsError != one.failed || r.Content[0].Text != one.text || string(r.StructuredContent) != one.structured {
			t.Errorf("%s: %+v %s, %v", name, r.Content, r.StructuredContent, err)
		}
		if name == "own unit" && (len(r.Content) != 2 || r.Content[1].Text != "Credits: 1.25 AI credits left") {
			t.Errorf("%s: %+v", name, r.Content)
		}
		if name == "a budget" && (len(r.Content) != 2 || r.Content[1].Text != "Budget: 1,200 tokens of 200,000 tokens used (daily), resets 2026-11-24T00:00:00Z") {
			t.Errorf("%s: %+v", name, r.Content)
		}
	}
}
