package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/store"
)

func (f *fake) serverHandlers() map[string]handler {
	one := func(r *http.Request, do func(store.Server) (any, error)) (any, error) {
		s, err := find("server", r.PathValue("name"), f.servers)
		if err != nil {
			return nil, err
		}
		return do(s)
	}
	return map[string]handler{
		"GET /v1/servers": func(r *http.Request) (any, error) {
			l := api.List[api.ServerView]{}
			for _, s := range listed(f.servers).Items {
				v := f.view(s)
				v.Tools = nil
				l.Items = append(l.Items, v)
			}
			return l, nil
		},
		"POST /v1/servers": func(r *http.Request) (any, error) {
			a, err := read[api.AddServer](r)
			if err != nil {
				return nil, err
			}
			if _, taken := f.servers[a.Server.Name]; taken {
				return nil, fmt.Errorf("server %q %w: choose another name, or remove it first", a.Server.Name, store.ErrExists)
			}
			if f.unreachable && !a.Force {
				return nil, fmt.Errorf("connecting to %s: %w", a.Server.Name, api.ErrUnavailable)
			}
			f.servers[a.Server.Name] = a.Server
			v := f.view(a.Server)
			v.Unreachable = f.unreachable
			return v, nil
		},
		"GET /v1/servers/{name}": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) { return f.view(s), nil })
		},
		"PATCH /v1/servers/{name}": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) {
				p, err := read[api.PatchServer](r)
				if err != nil {
					return nil, err
				}
				applyPatch(&s, p)
				set(&s.Disabled, p.Disabled)
				set(&s.Visibility, p.Visibility)
				f.servers[s.Name] = s
				return f.view(s), nil
			})
		},
		"DELETE /v1/servers/{name}": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) { delete(f.servers, s.Name); return api.Empty{}, nil })
		},
		"POST /v1/servers/{name}/test": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) { return f.probe, nil })
		},
		"POST /v1/servers/{name}/restart": func(r *http.Request) (any, error) {
			return one(r, func(s store.Server) (any, error) { return f.view(s), nil })
		},
		"GET /v1/servers/{name}/trust": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) { return api.List[api.TrustView]{Items: f.held}, nil })
		},
		"POST /v1/servers/{name}/trust": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) {
				a, err := read[api.Accept](r)
				if err != nil {
					return nil, err
				}
				l := api.List[api.ToolView]{}
				for _, t := range a.Tools {
					l.Items = append(l.Items, api.ToolView{ID: t.Tool, State: store.ToolAccepted})
				}
				return l, nil
			})
		},
		"GET /v1/servers/{name}/logs": func(r *http.Request) (any, error) {
			return one(r, func(store.Server) (any, error) {
				out := lines{}
				for _, text := range f.logs {
					out = append(out, api.LogLine{Text: text})
				}
				return out, nil
			})
		},
	}
}

func (f *fake) toolHandlers() map[string]handler {
	one := func(r *http.Request) (api.ToolSchema, error) {
		m := map[string]api.ToolSchema{}
		for _, t := range f.tools {
			m[t.ID] = t
		}
		return find("tool", r.PathValue("id"), m)
	}
	views := func() []api.ToolView {
		return each(f.tools, func(t api.ToolSchema) api.ToolView { return t.ToolView })
	}
	return map[string]handler{
		"GET /v1/tools": func(r *http.Request) (any, error) { return api.List[api.ToolView]{Items: views()}, nil },
		"GET /v1/tools/search": func(r *http.Request) (any, error) {
			found := api.Found{}
			for _, t := range f.tools {
				if strings.Contains(strings.ToLower(t.Description), "time") && strings.Contains(r.FormValue("q"), "time") {
					found.Tools = append(found.Tools, api.FoundTool{ID: t.ID, Name: t.Name, Description: t.Description, Score: .87})
				}
			}
			return found, nil
		},
		"GET /v1/tools/{id}": func(r *http.Request) (any, error) { return one(r) },
		"POST /v1/tools/{id}/call": func(r *http.Request) (any, error) {
			t, err := one(r)
			if err != nil {
				return nil, err
			}
			c, err := read[api.CallTool](r)
			if err != nil {
				return nil, err
			}
			return f.call(t.ID, c.Args)
		},
		"GET /v1/domains": func(r *http.Request) (any, error) {
			return api.List[api.Domain]{Items: []api.Domain{{ID: "time", ToolCount: len(f.tools)}}}, nil
		},
		"GET /v1/domains/{id}": func(r *http.Request) (any, error) {
			if r.FormValue("cursor") == "" {
				return api.DomainTools{Items: views(), NextCursor: "2"}, nil
			}
			return api.DomainTools{Items: []api.ToolView{{ID: "toolbox:second", State: store.ToolAccepted}}}, nil
		},
	}
}

func (f *fake) tokenHandlers() map[string]handler {
	create := func(name string, expires time.Time) api.CreatedToken {
		t := store.Token{ID: "01T", Name: name, User: "01U", Prefix: "nize_ab", Audience: "mcp", Created: now, Expires: expires}
		f.tokens[name] = t
		return api.CreatedToken{Token: t, Secret: api.NewSecret("nize_abcdefghijklmnopqrstuvwxyz")}
	}
	return map[string]handler{
		"GET /v1/tokens": func(r *http.Request) (any, error) {
			l := api.List[api.TokenView]{}
			for _, t := range listed(f.tokens).Items {
				l.Items = append(l.Items, api.TokenView{Token: t, State: t.State(now), UserName: "ada"})
			}
			return l, nil
		},
		"POST /v1/tokens": func(r *http.Request) (any, error) {
			c, err := read[api.CreateToken](r)
			if err != nil {
				return nil, err
			}
			if t, ok := f.tokens[c.Name]; ok && t.State(now) == "active" && !c.Overwrite {
				return nil, fmt.Errorf("token %q %w: add --overwrite to replace it", c.Name, store.ErrExists)
			}
			return create(c.Name, now.Add(90*24*time.Hour)), nil
		},
		"POST /v1/tokens/{name}/rotate": func(r *http.Request) (any, error) {
			if _, err := find("token", r.PathValue("name"), f.tokens); err != nil {
				return nil, err
			}
			return create(r.PathValue("name"), now.Add(time.Hour)), nil
		},
		"DELETE /v1/tokens/{name}": func(r *http.Request) (any, error) {
			t, err := find("token", r.PathValue("name"), f.tokens)
			delete(f.tokens, t.Name)
			return api.Revoked{Revoked: 1}, err
		},
		"DELETE /v1/tokens": func(r *http.Request) (any, error) {
			n := len(f.tokens)
			clear(f.tokens)
			return api.Revoked{Revoked: n}, nil
		},
		"GET /v1/credentials": func(r *http.Request) (any, error) {
			l := api.List[store.Credential]{}
			for k := range f.credentials {
				l.Items = append(l.Items, store.Credential{CredentialKey: k, Updated: now})
			}
			return l, nil
		},
		"PUT /v1/credentials": func(r *http.Request) (any, error) {
			p, err := read[api.PutCredential](r)
			if err == nil {
				f.credentials[p.CredentialKey] = p.Secret.Reveal()
			}
			return api.Empty{}, err
		},
		"DELETE /v1/credentials": func(r *http.Request) (any, error) {
			q := r.URL.Query()
			key := store.CredentialKey{Scope: q.Get("scope"), Owner: q.Get("owner"), Service: q.Get("service"), Name: q.Get("name")}
			if _, ok := f.credentials[key]; !ok {
				return nil, fmt.Errorf("credential %w", store.ErrNotFound)
			}
			delete(f.credentials, key)
			return api.Empty{}, nil
		},
	}
}

func (f *fake) modelHandlers() map[string]handler {
	provider := func(name string, enabled bool) (store.Provider, error) {
		p, err := find("provider", name, f.providers)
		return store.Provider{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, HasKey: !p.Key.IsZero(), Enabled: enabled}, err
	}
	change := func(r *http.Request, do func(*store.ModelName) error) (any, error) {
		m, err := find("model name", r.PathValue("logical"), f.models)
		if err == nil {
			err = do(&m)
		}
		if err == nil {
			f.models[m.Name] = m
		}
		return m, err
	}
	return map[string]handler{
		"GET /v1/providers": func(r *http.Request) (any, error) {
			l := api.List[store.Provider]{}
			for _, p := range listed(f.providers).Items {
				v, _ := provider(p.Name, true)
				l.Items = append(l.Items, v)
			}
			return l, nil
		},
		"POST /v1/providers": func(r *http.Request) (any, error) {
			p, err := read[api.AddProvider](r)
			if err != nil {
				return nil, err
			}
			f.providers[p.Name] = p
			return provider(p.Name, true)
		},
		"POST /v1/providers/{name}/test": func(r *http.Request) (any, error) {
			if _, err := provider(r.PathValue("name"), true); err != nil {
				return nil, err
			}
			return api.ProviderTest{Error: "401 from the service", Hint: "give it a new key with nizectl providers add openai"}, nil
		},
		"POST /v1/providers/{name}/enable":  func(r *http.Request) (any, error) { return provider(r.PathValue("name"), true) },
		"POST /v1/providers/{name}/disable": func(r *http.Request) (any, error) { return provider(r.PathValue("name"), false) },
		"DELETE /v1/providers/{name}": func(r *http.Request) (any, error) {
			p, err := provider(r.PathValue("name"), true)
			delete(f.providers, p.Name)
			return api.Empty{}, err
		},
		"GET /v1/models": func(r *http.Request) (any, error) {
			l := api.List[api.ModelView]{}
			for _, m := range listed(f.models).Items {
				l.Items = append(l.Items, api.ModelView{ModelName: m, Available: true})
			}
			return l, nil
		},
		"PUT /v1/models/{logical}": func(r *http.Request) (any, error) {
			s, err := read[api.SetModel](r)
			m := store.ModelName{Name: r.PathValue("logical"), Target: s.Target, Default: len(f.models) == 0}
			f.models[m.Name] = m
			return m, err
		},
		"POST /v1/models/{logical}/default": func(r *http.Request) (any, error) {
			return change(r, func(m *store.ModelName) error { m.Default = true; return nil })
		},
		"PUT /v1/models/{logical}/fallbacks": func(r *http.Request) (any, error) {
			return change(r, func(m *store.ModelName) error {
				s, err := read[api.SetFallbacks](r)
				m.Fallbacks = s.Fallbacks
				return err
			})
		},
		"DELETE /v1/models/{logical}": func(r *http.Request) (any, error) {
			_, err := find("model name", r.PathValue("logical"), f.models)
			delete(f.models, r.PathValue("logical"))
			return api.Empty{}, err
		},
		"GET /v1/agents": func(r *http.Request) (any, error) { return listed(f.agents), nil },
		"PUT /v1/agents/{id}": func(r *http.Request) (any, error) {
			a, err := read[store.Agent](r)
			f.agents[a.ID] = a
			return a, err
		},
		"DELETE /v1/agents/{id}": func(r *http.Request) (any, error) {
			_, err := find("agent", r.PathValue("id"), f.agents)
			delete(f.agents, r.PathValue("id"))
			return api.Empty{}, err
		},
	}
}

func (f *fake) restHandlers() map[string]handler {
	return map[string]handler{
		"GET /v1/status": func(r *http.Request) (any, error) {
			return api.Status{Version: "0.1.0", PID: 7, Started: now.Add(-time.Hour), Listen: "127.0.0.1:19560", Tools: len(f.tools),
				You: store.Caller{Name: "ada", Role: store.Admin}, Servers: []api.Health{{Name: "toolbox", State: "ready", ToolCount: 1}}}, nil
		},
		"GET /v1/approvals":      func(r *http.Request) (any, error) { return listed(f.cards), nil },
		"GET /v1/approvals/{id}": func(r *http.Request) (any, error) { return find("call", r.PathValue("id"), f.cards) },
		"POST /v1/approvals/{id}": func(r *http.Request) (any, error) {
			card, err := find("call", r.PathValue("id"), f.cards)
			if err != nil {
				return nil, err
			}
			d, err := read[api.Decide](r)
			if err != nil {
				return nil, err
			}
			if card.State != store.Pending {
				return nil, fmt.Errorf("call %s was %w by bob", card.Call, store.ErrDecided)
			}
			if d.Digest != card.Digest {
				return nil, fmt.Errorf("call %s %w", card.Call, store.ErrConflict)
			}
			card.State = map[store.Verb]store.State{store.Approve: store.Running, store.Deny: store.Refused, store.Cancel: store.Cancelled}[d.Verb]
			f.cards[card.Call] = card
			return store.Call{ID: card.Call, Server: "toolbox", Tool: "roll", State: card.State}, nil
		},
		"GET /v1/calls/{id}": func(r *http.Request) (any, error) {
			return store.Call{ID: r.PathValue("id"), Server: "toolbox", Tool: "convert_time", State: store.Done,
				Result: &store.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"at last"}]}`)}}, nil
		},
		"GET /v1/grants": func(r *http.Request) (any, error) {
			return api.List[store.Grant]{Items: []store.Grant{{ID: "01G", User: "01U", Tool: "toolbox:roll", Deny: true, Created: now}}}, nil
		},
		"DELETE /v1/grants/{id}": func(r *http.Request) (any, error) { return api.Empty{}, nil },
		"GET /v1/usage":          func(r *http.Request) (any, error) { return usageReport(r, f.usage), nil },
		"GET /v1/prices/{model}": func(r *http.Request) (any, error) {
			return api.PriceView{Price: store.Price{Model: r.PathValue("model"), In: 1, Cached: 0.5, Out: 2}, Known: true, Source: "table", AsOf: "2026-06"}, nil
		},
		"PUT /v1/prices/{model}": func(r *http.Request) (any, error) {
			p, err := read[api.SetPrice](r)
			return api.PriceView{Price: store.Price{Model: r.PathValue("model"), In: p.In, Cached: p.In, Out: p.Out}, Known: true, Source: "admin"}, err
		},
		"DELETE /v1/prices/{model}": func(r *http.Request) (any, error) {
			return api.PriceView{Price: store.Price{Model: r.PathValue("model")}}, nil
		},
		"GET /v1/audit": func(r *http.Request) (any, error) {
			out := lines{}
			for _, e := range f.events {
				out = append(out, e)
			}
			return out, nil
		},
		"GET /v1/audit/key":    func(r *http.Request) (any, error) { return api.AuditKey{ExportKey: fakeExportKey}, nil },
		"GET /v1/audit/export": func(r *http.Request) (any, error) { return f.export() },
		"GET /v1/audit/verify": func(r *http.Request) (any, error) {
			if f.verified == nil {
				return lines{api.VerifyLine{Done: 1, All: 3}, api.VerifyLine{Result: &api.Verified{OK: true, Events: 3, Checkpoints: []api.Checkpoint{}, ExportKey: fakeExportKey}}}, nil
			}
			return lines{api.VerifyLine{Result: f.verified}}, nil
		},
		"POST /v1/reindex": func(r *http.Request) (any, error) {
			if _, err := read[api.Reindex](r); err != nil {
				return nil, err
			}
			out := lines{}
			for _, l := range f.reindex {
				out = append(out, l)
			}
			return out, nil
		},
		"GET /v1/config": func(r *http.Request) (any, error) {
			l := api.List[api.Setting]{}
			for _, k := range store.Keys {
				l.Items = append(l.Items, f.setting(k))
			}
			return l, nil
		},
		"GET /v1/config/{key}": func(r *http.Request) (any, error) {
			k, err := store.FindKey(r.PathValue("key"))
			if err != nil {
				return nil, err
			}
			s := f.setting(k)
			return api.Explanation{Setting: s, Layers: []api.Layer{
				{Name: "environment", Where: "NIZE_X"}, {Name: s.Source, Set: true, Value: s.Value, Decides: true},
			}, Change: "nizectl config set " + k.Name + " VALUE"}, nil
		},
		"PUT /v1/config/{key}": func(r *http.Request) (any, error) {
			k, err := store.FindKey(r.PathValue("key"))
			if err != nil {
				return nil, err
			}
			p, err := read[api.PutSetting](r)
			if err != nil {
				return nil, err
			}
			if f.settings[k.Name], err = k.Check(p.Value); err != nil {
				delete(f.settings, k.Name)
				return nil, err
			}
			return f.setting(k), nil
		},
		"DELETE /v1/config/{key}": func(r *http.Request) (any, error) {
			k, err := store.FindKey(r.PathValue("key"))
			delete(f.settings, k.Name)
			return f.setting(k), err
		},
		"GET /v1/users": func(r *http.Request) (any, error) {
			return api.List[store.User]{Items: []store.User{{ID: "01U", Name: "ada", Role: store.Admin, State: store.Active, Identities: []string{"local:0"}}}}, nil
		},
	}
}

func (f *fake) setting(k store.Key) api.Setting {
	if v, ok := f.settings[k.Name]; ok {
		return api.Setting{Key: k, Value: v, Source: "system"}
	}
	return api.Setting{Key: k, Value: k.Default, Source: "default"}
}

// usageReport is what the daemon makes of rows.
func usageReport(r *http.Request, rows []store.UsageRow) store.UsageReport {
	p := r.URL.Query()
	since, _ := time.Parse(time.RFC3339Nano, p.Get("since"))
	report := store.UsageReport{By: p.Get("by"), Since: since, Zone: "UTC", Rows: rows, Total: store.UsageRow{Key: "all"}}
	for _, row := range rows {
		report.Total = report.Total.Plus(row)
		if row.Unpriced > 0 {
			report.Unpriced = append(report.Unpriced, row.Key)
		}
	}
	return report
}
