package attachments

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/incoming"
	"nize/bots/slack/slacktest"
	"nize/bots/slack/wire"
	"nize/store"
)

func FuzzBrought(f *testing.F) {
	f.Add([]byte(`[{"id":"F1","name":"a.txt","size":3,"url_private":"https://files.slack.com/a"},{"id":7},"x"]`))
	f.Add([]byte(`[{"is_share":true,"author_id":"U1","author_name":"x","text":"hi <@U2>","ts":"1.2","files":[{"id":"F2"}]}]`))
	f.Add([]byte(`[{"type":"section","text":{"type":"mrkdwn","text":"a <@U1>"},"fields":[{"type":"plain_text","text":"b"}]},{"type":"actions","elements":[{"type":"button","style":"primary","text":{"type":"plain_text","text":"Go"}}]}]`))
	f.Add([]byte(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x","style":{"code":true}},{"type":"user","user_id":"U1"}]}]}]`))
	f.Add([]byte(`[{"is_share":true,"author_id":"U1","text":"of the year 33658","ts":"999999999999.9"}]`))
	f.Add([]byte(`0<|>`))
	f.Add([]byte(`{"ts":"1.0","username":"\u202ebot","attachments":[{"title":"t","text":"x"}]}`))
	name := func(id string) string { return id }
	speaker := func(m *incoming.Message) store.Speaker { return store.Speaker{Name: incoming.SpeakerName(m.User)} }
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, s := range incoming.DecodeFiles(raw) {
			if !incoming.IDForm.MatchString(s.ID) || s.Label() == "" || len(s.Label()) > 6*200 {
				t.Errorf("%+v", s)
			}
		}
		var b gathered
		for _, fw := range incoming.DecodeForwarded(raw) {
			m := fw.Forwarded()
			if q, _ := m.Quote(slacktest.Bot, name, speaker); q.Text != "" {
				b.add(q)
			}
		}
		m := incoming.Message{Msg: slackgo.Msg{Text: string(raw)}, Blocks: raw, Attachments: raw, Files: raw}
		q, _ := m.Quote(slacktest.Bot, name, speaker)
		b.add(q)
		in := store.Inbound{Earlier: b.earlier}
		if !in.WithinLimits() {
			t.Errorf("%d quotes are too much", len(b.earlier.Quotes))
		}
		if _, err := json.Marshal(in); err != nil {
			t.Errorf("it can't be stored: %v", err)
		}
	})
}

// An app without files:read hears the message, and says why not the file.
func TestFilesWithoutScope(t *testing.T) {
	scopes := slices.DeleteFunc(slices.Clone(slacktest.Scopes), func(s string) bool { return s == "files:read" })
	fake := slacktest.Running(t, slacktest.Options{Unlimited: true, Scopes: scopes})
	soon := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	l := &Fetcher{
		Wire: wire.New(wire.Options{URL: fake.APIURL(), Wait: soon}, store.NewSecret(fake.BotToken()), store.Secret{}),
		Log:  slog.New(slog.NewTextHandler(t.Output(), nil)), Self: slacktest.Bot,
	}
	m, err := fake.Post(slacktest.Said{User: slacktest.Ann, Channel: slacktest.General, Files: []slacktest.File{{Name: "a.txt", Content: []byte("hello")}, {Name: "b.txt", Content: []byte("b"), Access: "check_file_info"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		s := incoming.File{File: slackgo.File{ID: f.ID, Mode: "hosted", Size: 5, URLPrivateDownload: fake.URL() + "/files/" + f.ID}}
		if f.Access != "" {
			s = incoming.File{File: slackgo.File{ID: f.ID, FileAccess: f.Access}}
		}
		if _, why := l.download(t.Context(), &s); why != store.FileDenied {
			t.Errorf("%s: %q", f.Name, why)
		}
	}
}
