package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
)

const (
	chatRate    = 200 // events a second
	chatSeconds = 5
)

// chat measures how soon Slack gets its acknowledgement at 200 events per second while the
// model answers none of them.
func (b *bench) chat(ctx context.Context) (err error) {
	var asked atomic.Int64
	held := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the request is noticed
		asked.Add(1)
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}))
	defer model.Close()
	defer close(held)
	slack := slacktest.New(slacktest.Options{Unlimited: true, Patience: patience})
	if err := slack.Start(nil); err != nil {
		return fmt.Errorf("starting the fake of Slack: %w", err)
	}
	defer slack.Close()
	d, err := b.startNized(ctx, "chat")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.talks(ctx, model.URL, slack); err != nil {
		return err
	}
	people := []string{slacktest.Ann, slacktest.Ben, slacktest.Cho}
	for _, who := range people { // look the people up first: Slack's own response time is not measured
		if _, err := slack.Mention(who, slacktest.General, "hello"); err != nil {
			return fmt.Errorf("mentioning nize: %w", err)
		}
	}
	err = d.until(ctx, "to ask the model", func(context.Context) bool { return asked.Load() >= int64(len(people)) })
	if err != nil {
		return err
	}
	before := slack.Stats()
	const events = chatRate * chatSeconds
	tick := time.NewTicker(2 * time.Second / chatRate) // a mention is two events
	defer tick.Stop()
	for i := range events / 2 {
		<-tick.C
		if _, err := slack.Mention(people[i%len(people)], slacktest.General, fmt.Sprintf("and number %d?", i)); err != nil {
			return fmt.Errorf("mentioning nize: %w", err)
		}
	}
	err = d.until(ctx, "to acknowledge all", func(context.Context) bool { return slack.Stats().Acked >= before.Acked+events })
	st := slack.Stats()
	if err == nil && st.Missed+st.Late+st.Dropped > 0 {
		err = fmt.Errorf("%d events were not acknowledged within %s", st.Missed+st.Late+st.Dropped, patience)
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("Slack, %d events/s while the model answers nothing: ", chatRate)
	b.table.add(row{what: what + "longest acknowledgement", value: millis(st.MaxAck), unit: "ms", reference: fmt.Sprintf("of %d events", events), floor: 500})
	b.table.add(row{what: what + "mean acknowledgement", value: millis(st.MeanAck()), unit: "ms"})
	return nil
}

// talks connects the daemon with the model and with Slack, and removes the limits on one
// person's messages.
func (d *nized) talks(ctx context.Context, model string, slack *slacktest.Server) error {
	settings := [][2]string{
		{"slack.api_url", slack.APIURL()},
		{"limits.user.messages", "0"}, {"limits.user.turns", "0"}, {"budgets.user.daily", "0"},
	}
	for _, s := range settings {
		if _, err := api.PutSetting.Call(ctx, d.api, api.PutSettingRequest{Key: s[0], Value: s[1]}); err != nil {
			return fmt.Errorf("setting %s: %w", s[0], err)
		}
	}
	if err := d.models(ctx, "silent", model); err != nil {
		return err
	}
	tokens := []api.Secret{api.NewSecret(slack.BotToken()), api.NewSecret(slack.AppToken())}
	if _, err := api.ConnectBot.Call(ctx, d.api, api.ConnectBotRequest{Name: "slack", Tokens: tokens}); err != nil {
		return fmt.Errorf("connecting Slack: %w", err)
	}
	return d.until(ctx, "to be linked with Slack", func(ctx context.Context) bool {
		list, err := api.ListBots.Call(ctx, d.api, api.Empty{})
		linked := slices.ContainsFunc(list.Items, func(b api.BotView) bool { return b.State == "connected" })
		return err == nil && linked && slack.Stats().Links == 1
	})
}
