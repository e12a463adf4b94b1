package daemon

import (
	"net/http"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/daemon/commands"
	"nize/daemon/mux"
	"nize/store"
)

// Operations are those of the control socket.
func Operations() []mux.Mounted {
	m := mux.New(http.NewServeMux(), mux.Options{})
	new(operations).mount(m)
	return m.Mounted()
}

// OnMemory is the surface of a platform that the house does not have.
const OnMemory store.Surface = "memory"

// WithPlatform adds a platform in memory to those of the house, on a surface
// that none of them has. The bot is there when New returns.
func WithPlatform(opt *Options, people ...string) *botstest.Bot {
	bot := &botstest.Bot{Memory: botstest.NewMemory(OnMemory), People: people, Now: time.Now}
	opt.testOnlyPlatforms = []platform{{OnMemory, botstest.CheckChannel, func(d *Daemon, words *bots.Commands, _ *commands.Home) bots.Bot {
		bot.Store, bot.Commands = d.db, words
		return bot
	}}}
	return bot
}

// FromThisMachine says who reads metrics without a token.
var FromThisMachine = fromThisMachine

// Platforms are the surfaces of the house's platforms.
func Platforms() (at []store.Surface) {
	for _, p := range platforms {
		at = append(at, p.at)
	}
	return at
}

// BuildToolbox is where nize-toolbox was built: the tests from outside build the
// programs, once for all.
var BuildToolbox func(testing.TB) string
