package slacktest

type wireUser struct {
	ID                string      `json:"id"`
	TeamID            string      `json:"team_id"`
	Name              string      `json:"name"`
	RealName          string      `json:"real_name"`
	Deleted           bool        `json:"deleted"`
	TZ                string      `json:"tz,omitempty"`
	TZOffset          int         `json:"tz_offset"`
	Locale            string      `json:"locale,omitempty"`
	IsAdmin           bool        `json:"is_admin"`
	IsOwner           bool        `json:"is_owner"`
	IsBot             bool        `json:"is_bot"`
	IsAppUser         bool        `json:"is_app_user"`
	IsRestricted      bool        `json:"is_restricted"`
	IsUltraRestricted bool        `json:"is_ultra_restricted"`
	IsStranger        bool        `json:"is_stranger,omitempty"`
	Profile           wireProfile `json:"profile"`
	Enterprise        *wireGrid   `json:"enterprise_user,omitempty"`
}

// wireGrid is an organization's data about its own people.
type wireGrid struct {
	ID           string   `json:"id"`
	EnterpriseID string   `json:"enterprise_id"`
	Name         string   `json:"enterprise_name"`
	Teams        []string `json:"teams"`
}

type wireProfile struct {
	RealName    string `json:"real_name"`
	DisplayName string `json:"display_name"`
	Team        string `json:"team"`
	BotID       string `json:"bot_id,omitempty"`
	APIAppID    string `json:"api_app_id,omitempty"`
}

func (u *User) wire() wireUser {
	w := wireUser{ID: u.ID, TeamID: u.Team, Name: u.Name, RealName: u.RealName, Deleted: u.Deleted, TZ: u.Zone, IsAdmin: u.Admin, IsBot: u.Bot,
		IsRestricted: u.Guest, IsUltraRestricted: u.SingleGuest, IsStranger: u.Stranger,
		Profile: wireProfile{RealName: u.RealName, DisplayName: u.Name, Team: u.Team}}
	if u.Bot {
		w.Profile.BotID = botIDOf(u.ID)
	}
	if len(u.Workspaces) > 0 {
		w.Enterprise = &wireGrid{ID: "W" + u.ID[1:], EnterpriseID: "E0FAKE", Name: "Fake Org", Teams: u.Workspaces}
	}
	return w
}

// botIDOf returns the bot id of a bot's user.
func botIDOf(user string) string { return "B" + user[1:] }

type identity struct {
	URL    string `json:"url"`
	Team   string `json:"team"`
	User   string `json:"user"`
	TeamID string `json:"team_id"`
	UserID string `json:"user_id"`
	BotID  string `json:"bot_id"`
	AppID  string `json:"app_id,omitempty"`
	Org    bool   `json:"is_enterprise_install"`
}

func (s *Server) authTest(args) (any, error) {
	return identity{URL: s.URL() + "/", Team: "Fake Inc", User: "nize", TeamID: Team, UserID: Bot, BotID: BotID, AppID: App, Org: s.opt.Organization}, nil
}

type oneBot struct {
	Bot wireBot `json:"bot"`
}

type wireBot struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	AppID   string `json:"app_id"`
	UserID  string `json:"user_id"`
	Deleted bool   `json:"deleted"`
}

func (s *Server) botsInfo(a args) (any, error) {
	for _, u := range s.world.users {
		if u.Bot && (botIDOf(u.ID) == a["bot"] || a["bot"] == "" && u.ID == Bot) {
			app := "A" + u.ID[1:]
			return oneBot{wireBot{ID: botIDOf(u.ID), Name: u.Name, AppID: app, UserID: u.ID, Deleted: u.Deleted}}, nil
		}
	}
	return nil, fail("bot_not_found")
}

type oneUser struct {
	User wireUser `json:"user"`
}

func (s *Server) usersInfo(a args) (any, error) {
	u := s.world.user(a["user"])
	if u == nil {
		return nil, fail("user_not_found")
	}
	w := u.wire()
	if a.flag("include_locale", false) {
		w.Locale = u.Locale
	}
	return oneUser{w}, nil
}

type userPage struct {
	Members []wireUser `json:"members"`
	Meta    metadata   `json:"response_metadata"`
}

func (s *Server) usersList(a args) (any, error) {
	list := []wireUser{}
	for _, u := range s.world.users {
		w := u.wire()
		if a.flag("include_locale", false) {
			w.Locale = u.Locale
		}
		list = append(list, w)
	}
	var out userPage
	out.Members, out.Meta = page(a, list, 1000)
	return out, nil
}

type wireGroup struct {
	ID     string   `json:"id"`
	TeamID string   `json:"team_id"`
	Name   string   `json:"name"`
	Handle string   `json:"handle"`
	Users  []string `json:"users,omitempty"`
	Count  int      `json:"user_count"`
	Gone   int64    `json:"date_delete"`
}

type groupPage struct {
	Groups []wireGroup `json:"usergroups"`
}

func (s *Server) groupsList(a args) (any, error) {
	out := groupPage{Groups: []wireGroup{}}
	for _, g := range s.world.groups {
		if g.Disabled && !a.flag("include_disabled", false) {
			continue
		}
		w := wireGroup{ID: g.ID, TeamID: Team, Name: g.Name, Handle: g.Handle, Count: len(g.Users)}
		if g.Disabled {
			w.Gone = 1700000000
		}
		if a.flag("include_users", false) {
			w.Users = g.Users
		}
		out.Groups = append(out.Groups, w)
	}
	return out, nil
}

type groupMembers struct {
	Users []string `json:"users"`
}

func (s *Server) groupUsers(a args) (any, error) {
	for _, g := range s.world.groups {
		if g.ID == a["usergroup"] && (!g.Disabled || a.flag("include_disabled", false)) {
			return groupMembers{Users: append([]string{}, g.Users...)}, nil
		}
	}
	return nil, fail("no_such_subteam")
}

type oneTeam struct {
	Team wireTeam `json:"team"`
}

type wireTeam struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
}

func (s *Server) teamInfo(args) (any, error) {
	return oneTeam{wireTeam{ID: Team, Name: "Fake Inc", Domain: "fake"}}, nil
}
