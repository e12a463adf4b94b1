package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/daemon/alert"
	"nize/mcp/upstream"
	"nize/store"
)

func (m *Monitor) servers(ctx context.Context, r *alert.Result) error {
	list, err := m.Store.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("listing servers: %w", err)
	}
	names, err := m.Directory.Names(ctx)
	if err != nil {
		return err
	}
	health := map[string]upstream.ServerStatus{}
	for _, st := range m.Pool.Status() {
		health[st.Name] = st
	}
	for _, server := range list {
		st, known := health[server.Name]
		if server.Disabled || !known {
			continue
		}
		down := alert.Key{Kind: alert.ServerDown, Subject: server.Name}
		shared := slices.Contains(st.LoginLost, "")
		switch st.State {
		case upstream.Down, upstream.Open:
			if !shared { // reported separately
				r.Wrong = append(r.Wrong, serverDown(server, st))
			}
		case upstream.Connecting:
			r.Unknown = append(r.Unknown, down, alert.Key{Kind: alert.LoginLost, Subject: server.Name})
		}
		for _, owner := range st.LoginLost {
			r.Wrong = append(r.Wrong, loginLost(server, store.ParseHolder(owner), names[owner]))
		}
		if st.Held > 0 {
			if err := m.heldTools(ctx, server.Name, r); err != nil {
				return err
			}
		}
	}
	for _, t := range m.Held() {
		r.Wrong = append(r.Wrong, toolHeld(t))
	}
	return nil
}

// heldShown is how many of a server's tools are reported individually.
const heldShown = 5

func serverDown(server store.Server, st upstream.ServerStatus) alert.Symptom {
	return alert.Symptom{
		Key:   alert.Key{Kind: alert.ServerDown, Subject: server.Name},
		Title: store.Textf("Server %s is down", server.Name),
		Text:  withCause(store.Textf("Its tools can't be called."), store.Line(st.LastError)),
		Cure:  "nizectl servers test " + server.Name,
	}
}

// loginLost reports a lost credential of a server: the shared one, or that of one person,
// whose name is given, or of one team.
func loginLost(server store.Server, h store.Holder, name string) alert.Symptom {
	key := "NAME"
	for _, v := range server.Headers {
		if v.SecretKey != "" {
			key = v.SecretKey
		}
	}
	a := alert.Symptom{
		Key:   alert.Key{Kind: alert.LoginLost, Subject: server.Name},
		Title: store.Textf("Server %s refuses its credential", server.Name),
		Text:  store.Textf("It responds that nize is not signed in, so its tools can't be called."),
		Cure:  "nizectl credentials set " + server.Name + " " + key,
	}
	if key == store.LoginName {
		a.Title = store.Textf("No one is signed in to server %s", server.Name)
		a.Cure = "nizectl servers login " + server.Name
	}
	signs := key == store.LoginName
	switch h.Scope {
	case "user":
		a.Subject += " " + h.Owner
		a.Users = []string{h.Owner}
		a.Title, a.Cure = store.Textf("Server %s refuses the credential of %s", server.Name, name), a.Cure+" --scope user --owner "+h.Owner
		if signs {
			a.Title, a.Cure = store.Textf("%s is no longer signed in to server %s", name, server.Name), "/nize credentials connect "+server.Name
		}
	case "team":
		a.Subject += " " + h.Label()
		a.Title, a.Cure = store.Textf("Server %s refuses the credential of %s", server.Name, h.Label()), a.Cure+" --scope team --owner "+h.Owner
		if signs {
			a.Title, a.Cure = store.Textf("%s is no longer signed in to server %s", h.Label(), server.Name), "nizectl servers login "+server.Name+" --team "+h.Owner
		}
	}
	return a
}

// heldTools reports a server's quarantined tools individually up to a number, since a
// server can change two thousand at once. Tools that were reported stay reported.
func (m *Monitor) heldTools(ctx context.Context, server string, r *alert.Result) error {
	tools, err := m.Store.ListTools(ctx, server)
	if err != nil {
		return fmt.Errorf("listing tools of %s: %w", server, err)
	}
	tools = slices.DeleteFunc(tools, func(t store.Tool) bool { return t.State != store.ToolQuarantined })
	if len(tools) > heldShown {
		active, err := m.Store.ListIncidents(ctx, store.IncidentQuery{Kinds: []string{alert.ToolHeld}})
		if err != nil {
			return fmt.Errorf("reading incidents: %w", err)
		}
		told := map[string]bool{}
		for _, i := range active {
			told[i.Kind+" "+i.Subject] = true
		}
		slices.SortStableFunc(tools, func(a, b store.Tool) int {
			if x, y := told[alert.ToolHeld+" "+a.ID()], told[alert.ToolHeld+" "+b.ID()]; x != y {
				return map[bool]int{true: -1, false: 1}[x]
			}
			return 0
		})
	}
	for n, t := range tools {
		if n == heldShown {
			r.Wrong = append(r.Wrong, alert.Symptom{
				Key:   alert.Key{Kind: alert.ToolHeld, Subject: server + ":*"},
				Title: store.Textf("%d more tools of %s are held", len(tools)-n, server),
				Text:  store.Textf("Their definitions are new, changed or suspicious. They are neither found nor callable until an admin accepts them."),
				Cure:  "nizectl servers trust " + server,
			})
			break
		}
		r.Wrong = append(r.Wrong, toolHeld(t))
	}
	return nil
}

func toolHeld(t store.Tool) alert.Symptom {
	why := store.Textf("its definition is new and has not been accepted")
	if t.Accepted != "" && t.Accepted != t.Pin {
		why = store.Textf("its definition differs from the accepted one")
	}
	if len(t.Findings) > 0 {
		why = store.Textf("%s (%s)", why, store.Line(strings.Join(t.Findings, "; ")))
	}
	return alert.Symptom{
		Key:   alert.Key{Kind: alert.ToolHeld, Subject: t.ID()},
		Title: store.Textf("Tool %s is held", t.ID()),
		Text:  store.Textf("It is neither found nor callable: %s.", why),
		Cure:  "nizectl servers trust " + t.Server + " " + t.Name,
	}
}
