package doctor

import (
	"nize/daemon/api"
	"nize/store"
)

// Identity is the company's identity provider, if one is set. Steps are the results of
// testing it, if it was asked.
type Identity struct {
	Name        string
	RedirectURI string
	Secure      bool // browsers return to an https or loopback address
	Steps       []api.OIDCStep
}

func identityProvider(f Facts) (all []api.Finding) {
	p := f.Identity
	if p == nil {
		return nil
	}
	for _, s := range p.Steps {
		if !s.OK {
			all = append(all, problem(store.Textf("people can't sign in with it: %s", s.Text), s.Cure)...)
		}
	}
	switch {
	case len(all) > 0:
	case len(p.Steps) > 0:
		all = ok(store.Textf("people can sign in with it: its issuer, keys, clock and redirect address were tested"))
	case !p.Secure:
		all = problem(store.Textf("people can't sign in with it: their browsers return to %s, which is not https", p.RedirectURI), "nizectl config set public_url https://HOST")
	default:
		all = ok(store.Textf("is set up; doctor --online tests it"))
	}
	for i := range all {
		all[i].Subject = p.Name
	}
	return all
}
