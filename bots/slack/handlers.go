package slack

import (
	"nize/bots"
	"nize/bots/slack/view"
)

// newHandlers registers the handlers for buttons, choices and dialogs.
func (l *live) newHandlers() handlers {
	press := func(do pressFunc) onPress { return onPress{do: do} }
	kept := func(do pressFunc) onPress { return onPress{kept: true, do: do} }
	h := handlers{
		presses: map[string]onPress{
			view.PageAction:       press(l.cards.turnPage),
			view.ResultAction:     press(l.cards.openResult),
			view.ResultFileAction: press(l.cards.sendResult),
			view.WordsAction:      press(l.commands.pressWords),
			view.ShareAction:      kept(l.cards.pressShare),
			view.HomeAction:       kept(l.homes.Press),
			view.ConnectAction:    press(l.commands.pressConnect),
		},
		submits: map[string]onSubmit{
			view.ReasonView: {do: l.cards.submitReason},
			view.EditView:   {check: l.cards.checkEdit, do: l.cards.submitEdit},
			view.AlwaysView: {check: l.cards.checkAlways, do: l.cards.submitAlways},
			view.FormView:   {check: l.commands.checkForm, do: l.commands.submitForm},
			view.SecretView: {now: l.commands.submitSecret},
			aboutMessage:    {do: l.talk.submitAbout},
		},
		shortcuts: map[string]onShortcut{aboutMessage: l.talk.askAbout},
	}
	h.presses[view.MenuAction] = press(l.cards.choose)
	for verb, p := range map[string]onPress{
		bots.VerbRun: kept(l.cards.decide), bots.VerbRunAll: kept(l.cards.decide), bots.VerbDecline: kept(l.cards.decide), bots.VerbRetry: kept(l.cards.decide), bots.VerbAgain: kept(l.cards.decide), bots.VerbDismiss: kept(l.cards.decide),
		// Cards of earlier versions have buttons for these.
		bots.VerbAlways: press(l.cards.openAlways), bots.VerbNever: press(l.cards.openAlways),
		bots.VerbEdit: press(l.cards.openEdit), bots.VerbShow: press(l.cards.openAll),
	} {
		h.presses[view.CallAction+"-"+verb] = p
	}
	return h
}
