package slack

import (
	"context"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
)

// The App Home shows a person what is theirs, by the commands that tell it in
// a message, and has buttons for those that do something.

// homeShows and homeDoes are the commands of the Home, where they exist.
var (
	homeShows = []string{"approvals", "usage", "servers", "settings", "tokens", "privacy"}
	homeDoes  = []string{"connect", "tokens new", "link", "agent", "model", "help"}
)

// drawHome publishes the Home of one person.
func drawHome(ctx context.Context, l *live, p person) error {
	w := p.words()
	var blocks []slackgo.Block
	for _, name := range homeShows {
		cmd, words, _, ok := l.b.o.Commands.Find(p.by(), name, false)
		if !ok {
			continue
		}
		answer, err := l.b.o.Commands.Run(ctx, cmd, l.asked(p, l.place("", ""), words))
		if err != nil {
			l.log.Error("running a command for the Home", "command", name, "err", err)
		}
		blocks = append(blocks, slackgo.NewHeaderBlock(plainText(clip(w.Say(cmd.About), maxHeader))))
		for _, piece := range pieces(answer.Text, maxSection) {
			blocks = append(blocks, slackgo.NewSectionBlock(plainText(piece), nil, nil))
		}
	}
	var buttons []slackgo.BlockElement
	for _, name := range homeDoes {
		if cmd, _, _, ok := l.b.o.Commands.Find(p.by(), name, false); ok {
			label := w.Say(cmd.About)
			if name == "tokens new" {
				label = w.Say(phrases.ButtonToken)
			}
			buttons = append(buttons, button(wordsAction+":home-"+cmd.Name, label, name))
		}
	}
	if len(buttons) > 0 {
		blocks = append(blocks, slackgo.NewDividerBlock(), slackgo.NewActionBlock("", buttons...))
	}
	if len(blocks) == 0 {
		return nil
	}
	view := slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: blocks}}
	return l.wire.call(ctx, func(ctx context.Context) error {
		_, err := l.wire.api.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: p.id, View: view})
		return err
	})
}
