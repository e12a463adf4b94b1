package slack

import "nize/bots/slack/view"

// newHandlers is what people can press, choose and fill in.
func (l *live) newHandlers() handlers {
	press := func(do pressFunc) onPress { return onPress{do: do} }
	kept := func(do pressFunc) onPress { return onPress{kept: true, do: do} }
	h := handlers{
		presses: map[string]onPress{
			view.PageAction:       press(l.turnPage),
			view.ResultAction:     press(l.openResult),
			view.ResultFileAction: press(l.sendResult),
			view.WordsAction:      press(l.pressWords),
			view.ShareAction:      kept(l.pressShare),
			view.HomeAction:       kept(l.homes.Press),
			view.ConnectAction:    press(l.pressConnect),
		},
		submits: map[string]onSubmit{
			view.EditView:   {check: l.checkEdit, do: l.submitEdit},
			view.AlwaysView: {check: l.checkAlways, do: l.submitAlways},
			view.FormView:   {check: l.checkForm, do: l.submitForm},
			view.SecretView: {now: l.submitSecret},
			aboutMessage:    {do: l.submitAbout},
		},
		shortcuts: map[string]onShortcut{aboutMessage: l.askAbout},
	}
	for verb, p := range map[string]onPress{
		view.VerbRun: kept(l.decide), view.VerbRunAll: kept(l.decide), view.VerbCancel: kept(l.decide), view.VerbRetry: kept(l.decide), view.VerbAgain: kept(l.decide),
		view.VerbAlways: press(l.openAlways), view.VerbNever: press(l.openAlways),
		view.VerbEdit: press(l.openEdit), view.VerbShow: press(l.openAll),
	} {
		h.presses[view.CallAction+"-"+verb] = p
	}
	return h
}
