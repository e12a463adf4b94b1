package discordtest

type threadRequest struct {
	Name string `json:"name"`
	Auto *int   `json:"auto_archive_duration"`
	Type *int   `json:"type"`
}

func (s *Server) threadRequest(c *call) (threadRequest, error) {
	var in threadRequest
	if err := c.decode(&in); err != nil {
		return in, err
	}
	ck := &checker{}
	ck.length("name", in.Name, 1, 100)
	if in.Auto != nil {
		ck.archive("auto_archive_duration", *in.Auto)
	}
	if in.Type != nil && *in.Type != PublicThread && *in.Type != PrivateThread {
		ck.wrong("type", "BASE_TYPE_CHOICES", "Value must be one of {11, 12}.")
	}
	return in, ck.err()
}

func (s *Server) threadFrom(c *call) (any, error) {
	ch, m, err := s.myMessage(c, PublicThreads)
	if err != nil {
		return nil, err
	}
	in, err := s.threadRequest(c)
	switch {
	case err != nil:
		return nil, err
	case ch.Type != TextChannel:
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	case m.Thread != "":
		return nil, errHasThread
	}
	t := s.threadLocked(ch, m.ID, in, Bot)
	m.Thread, m.Flags = t.ID, m.Flags|HasThread
	s.updatedLocked(m)
	s.world.messages[t.ID] = append(s.world.messages[t.ID], &Message{ID: s.idLocked(), Channel: t.ID, Author: m.Author, Type: starterType, Created: s.opt.Now()})
	w := s.wireChannelLocked(t)
	return w, nil
}

// threadLocked begins a thread; s.Mu must be held.
func (s *Server) threadLocked(parent *Channel, id string, in threadRequest, owner string) *Channel {
	t := &Channel{ID: id, Guild: parent.Guild, Name: in.Name, Type: PublicThread, Parent: parent.ID, Owner: owner, Members: []string{owner}, AutoArchive: 4320}
	if in.Auto != nil {
		t.AutoArchive = *in.Auto
	}
	if in.Type != nil {
		t.Type = *in.Type
	}
	s.world.channels = append(s.world.channels, t)
	s.threadEventLocked(t, "THREAD_CREATE")
	return t
}

func (s *Server) threadEventLocked(t *Channel, name string) {
	if !t.thread() || !s.world.sees(t, Bot) {
		return
	}
	w := s.wireChannelLocked(t)
	w.Fresh = name == "THREAD_CREATE"
	s.eventLocked(Guilds, name, same(w))
}
