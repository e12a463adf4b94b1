package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/daemon/alert"
	"nize/daemon/doctor"
	"nize/mcp/upstream"
	"nize/store"
)

// What the desk of alerts looks at. A glance says all that is wrong of
// its kinds now; what it cannot tell, as of a server that is just connecting,
// stays as it was.

// glance is one of them.
type glance struct {
	kinds []string
	every time.Duration // 0 is every look
	look  func(*lookout, context.Context, *alert.Sight) error
}

var glances = []glance{
	{[]string{alert.ServerDown, alert.LoginLost, alert.ToolHeld}, 0, (*lookout).servers},
	{[]string{alert.BotDown}, 0, (*lookout).bots},
	{[]string{alert.TokenEnds}, time.Minute, (*lookout).tokens},
	{[]string{alert.BudgetLow, alert.BudgetOut}, 0, (*lookout).budgets},
	{[]string{alert.Disk}, 0, (*lookout).disk},
	{[]string{alert.Backup, alert.AuditFailed}, 0, (*lookout).runs},
	{[]string{alert.Migration}, 0, (*lookout).migration},
}

const (
	// diskWell is how much more than alerts.disk must be free before the disk
	// is well again.
	diskWell = 1.2
	// tokenNotice is how long before its end a token's owner is told; a token
	// that lives no longer was meant to end.
	tokenNotice = 7 * 24 * time.Hour
	// heldShown is how many tools of one server are told one by one.
	heldShown = 5
	// budgetLasts is how long a budget's event counts that does not say when
	// the budget starts anew.
	budgetLasts  = 24 * time.Hour
	budgetLonger = 31 * 24 * time.Hour
	// shownError bounds what a server's error takes of a text.
	shownError = 500
)

// lookout is the desk's eyes. Only the desk's goroutine uses it.
type lookout struct {
	d     *Daemon
	space func(path string) (doctor.Space, error)
	seen  []seen // by glance

	spent map[alert.Key]budgetEvent // the newest of each
	after uint64                    // the newest event that was read; 0: none yet
	moved bool                      // the note of a failed migration was read
}

// seen is what a glance saw last.
type seen struct {
	sight alert.Sight
	next  time.Time
	err   string // that was logged
}

func newLookout(d *Daemon) *lookout {
	return &lookout{d: d, space: doctor.SpaceOf, seen: make([]seen, len(glances)), spent: map[alert.Key]budgetEvent{}}
}

// look takes every glance that is due.
func (l *lookout) look(ctx context.Context) alert.Sight {
	var all alert.Sight
	now := l.d.now()
	for i, g := range glances {
		s := &l.seen[i]
		if !now.Before(s.next) {
			s.sight, s.next = alert.Sight{}, now.Add(g.every)
			err := g.look(l, ctx, &s.sight)
			if err != nil {
				for _, kind := range g.kinds {
					s.sight.Unknown = append(s.sight.Unknown, alert.Key{Kind: kind})
				}
			}
			if err != nil && ctx.Err() == nil && err.Error() != s.err {
				s.err = err.Error()
				l.d.log.Error("looking for incidents", "kinds", g.kinds, "err", err)
			} else if err == nil {
				s.err = ""
			}
		}
		all.Wrong = append(all.Wrong, s.sight.Wrong...)
		all.Unknown = append(all.Unknown, s.sight.Unknown...)
	}
	return all
}

func (l *lookout) servers(ctx context.Context, s *alert.Sight) error {
	list, err := l.d.db.ListServers(ctx)
	if err != nil {
		return fmt.Errorf("listing servers: %w", err)
	}
	names, err := l.d.directory.Names(ctx)
	if err != nil {
		return err
	}
	health := l.d.healths()
	for _, server := range list {
		st, known := health[server.Name]
		if server.Disabled || !known {
			continue
		}
		down := alert.Key{Kind: alert.ServerDown, Subject: server.Name}
		shared := slices.Contains(st.LoginLost, "")
		switch st.State {
		case upstream.Down, upstream.Open:
			if !shared { // that is told in its own words
				s.Wrong = append(s.Wrong, serverDown(server, st))
			}
		case upstream.Connecting:
			s.Unknown = append(s.Unknown, down, alert.Key{Kind: alert.LoginLost, Subject: server.Name})
		}
		for _, owner := range st.LoginLost {
			s.Wrong = append(s.Wrong, loginLost(server, owner, names[owner]))
		}
		if st.Held > 0 {
			if err := l.held(ctx, server.Name, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func serverDown(server store.Server, st upstream.ServerStatus) alert.Symptom {
	return alert.Symptom{
		Key:   alert.Key{Kind: alert.ServerDown, Subject: server.Name},
		Title: "Server " + server.Name + " is down",
		Text:  strings.TrimSpace("Its tools can't be called. " + clipText(st.LastError)),
		Cure:  "nizectl servers test " + server.Name,
	}
}

// loginLost is about the shared credential of a server, or that of one person.
func loginLost(server store.Server, owner, name string) alert.Symptom {
	key := "NAME"
	for _, v := range server.Headers {
		if v.SecretKey != "" {
			key = v.SecretKey
		}
	}
	a := alert.Symptom{
		Key:   alert.Key{Kind: alert.LoginLost, Subject: server.Name},
		Title: "Server " + server.Name + " refuses its credential",
		Text:  "It answers that nobody is signed in, so its tools can't be called.",
		Cure:  "nizectl credentials set " + server.Name + " " + key,
	}
	if owner != "" {
		a.Subject += " " + owner
		a.Title = fmt.Sprintf("Server %s refuses the credential of %s", server.Name, name)
		a.Cure += " --scope user --owner " + owner
		a.Users = []string{owner}
	}
	return a
}

// held tells the tools of one server that are in quarantine one by one, up to a
// number: a server can change two thousand at once. Those that were told stay.
func (l *lookout) held(ctx context.Context, server string, s *alert.Sight) error {
	tools, err := l.d.db.ListTools(ctx, server)
	if err != nil {
		return fmt.Errorf("listing tools of %s: %w", server, err)
	}
	tools = slices.DeleteFunc(tools, func(t store.Tool) bool { return t.State != store.ToolQuarantined })
	if len(tools) > heldShown {
		active, err := l.d.db.ListIncidents(ctx, store.IncidentQuery{})
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
			s.Wrong = append(s.Wrong, alert.Symptom{
				Key:   alert.Key{Kind: alert.ToolHeld, Subject: server + ":*"},
				Title: fmt.Sprintf("%d more tools of %s are held", len(tools)-n, server),
				Text:  "Their definitions are new, changed or suspicious. They are neither found nor callable until an admin accepts them.",
				Cure:  "nizectl servers trust " + server,
			})
			break
		}
		s.Wrong = append(s.Wrong, toolHeld(t))
	}
	return nil
}

func toolHeld(t store.Tool) alert.Symptom {
	why := "its definition is new and nobody has accepted it"
	if t.Accepted != "" && t.Accepted != t.Pin {
		why = "its definition is another than the accepted one"
	}
	if len(t.Findings) > 0 {
		why += " (" + clipText(strings.Join(t.Findings, "; ")) + ")"
	}
	return alert.Symptom{
		Key:   alert.Key{Kind: alert.ToolHeld, Subject: t.ID()},
		Title: "Tool " + t.ID() + " is held",
		Text:  "It is neither found nor callable: " + why + ".",
		Cure:  "nizectl servers trust " + t.Server + " " + t.Name,
	}
}

func (l *lookout) tokens(ctx context.Context, s *alert.Sight) error {
	tokens, err := l.d.db.ListTokens(ctx, "")
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	ending := expiring(tokens, l.d.now())
	if len(ending) == 0 {
		return nil
	}
	names, err := l.d.directory.Names(ctx)
	if err != nil {
		return err
	}
	for _, t := range ending {
		s.Wrong = append(s.Wrong, alert.Symptom{
			Key:   alert.Key{Kind: alert.TokenEnds, Subject: t.ID},
			Title: fmt.Sprintf("Token %s of %s expires on %s", t.Name, names[t.User], t.Expires.UTC().Format(time.DateOnly)),
			Text:  fmt.Sprintf("Clients that use it are refused from %s on.", t.Expires.UTC().Format("2006-01-02 15:04 MST")),
			Cure:  rotateCommand(t.Name, names[t.User]),
			Users: []string{t.User},
		})
	}
	return nil
}

// expiring are the tokens whose owners must do something soon.
func expiring(tokens []store.Token, now time.Time) []store.Token {
	return slices.DeleteFunc(tokens, func(t store.Token) bool {
		return t.State(now) != "active" || !t.Revoked.IsZero() || t.Expires.Sub(now) > tokenNotice || t.Expires.Sub(t.Created) <= tokenNotice
	})
}

func rotateCommand(token, user string) string {
	return fmt.Sprintf("nizectl tokens rotate %s --user %s --grace 10m", store.ShellWord(token), store.ShellWord(user))
}

func (l *lookout) disk(_ context.Context, s *alert.Sight) error {
	space, err := l.space(l.d.opt.DataDir)
	if err != nil {
		return fmt.Errorf("looking at the disk: %w", err)
	}
	k := alert.Key{Kind: alert.Disk, Subject: l.d.opt.DataDir}
	low := l.d.diskLow()
	switch part := space.Part(); {
	case part < low:
		s.Wrong = append(s.Wrong, alert.Symptom{
			Key: k, Title: fmt.Sprintf("The disk of nize is nearly full: %.0f %% are free", 100*part),
			Text: fmt.Sprintf("%s has %s free. When it is full, every tool call is refused.", l.d.opt.DataDir, space),
			Cure: "df -h " + store.ShellWord(l.d.opt.DataDir),
		})
	case part < low*diskWell:
		s.Unknown = append(s.Unknown, k)
	}
	return nil
}

// runs tells how the scheduled work ended. Until it ran in this process, nobody
// knows.
func (l *lookout) runs(_ context.Context, s *alert.Sight) error {
	backup := alert.Symptom{
		Key: alert.Key{Kind: alert.Backup, Subject: "scheduled"}, Title: "The scheduled backup failed",
		Cure: "nizectl backup nize-copy.db",
	}
	audit := alert.Symptom{
		Key: alert.Key{Kind: alert.AuditFailed, Subject: "trail"}, Title: "The audit trail does not hold",
		Cure: "nizectl audit verify",
	}
	for _, r := range []struct {
		kind   int
		key    string // of the schedule
		what   alert.Symptom
		before string
	}{
		{ranBackup, "backup.schedule", backup, "No new copy of the database was made: "},
		{ranAudit, "audit.schedule", audit, "Somebody or something changed or removed an event: "},
	} {
		switch last := l.d.ran.of(r.kind); {
		case l.d.config.Get("", r.key) == noSchedule:
		case last.at.IsZero():
			s.Unknown = append(s.Unknown, r.what.Key)
		case last.err != nil:
			r.what.Text = r.before + clipText(store.RedactText(last.err.Error()))
			s.Wrong = append(s.Wrong, r.what)
		}
	}
	return nil
}

// migration tells of one that failed at a start, which left a note since there
// was no daemon to tell. Where this daemon's schema is as new as the wanted one,
// it has succeeded since: it is told once, as over.
func (l *lookout) migration(_ context.Context, s *alert.Sight) error {
	note, err := readFailedMigration(l.d.opt.DataDir)
	if errors.Is(err, errNoNote) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.moved && note.passed() {
		return note.remove(l.d.opt.DataDir)
	}
	l.moved = true
	cure := "journalctl -u nized -e"
	if strings.Contains(note.Error, store.ErrDiskFull.Error()) {
		cure = "df -h " + store.ShellWord(l.d.opt.DataDir)
	}
	s.Wrong = append(s.Wrong, alert.Symptom{
		Key:   alert.Key{Kind: alert.Migration, Subject: fmt.Sprintf("schema %d", note.To)},
		Title: fmt.Sprintf("The upgrade of the database to schema %d failed", note.To),
		Text:  fmt.Sprintf("At %s: %s. Nothing was changed; start the newer nized again when that is mended.", note.At.UTC().Format("2006-01-02 15:04 MST"), clipText(note.Error)),
		Cure:  cure,
	})
	return nil
}

// diskLow is which part of the disk must be free, 0 to 1.
func (d *Daemon) diskLow() float64 { return float64(store.GetInt(d.config, "", "alerts.disk")) / 100 }

// clipText is a text from outside as one line of at most shownError runes.
func clipText(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > shownError {
		return string(r[:shownError-1]) + "…"
	}
	return s
}
