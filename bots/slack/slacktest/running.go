package slacktest

// tester is a test; nizectl serves this package too, and has no tests in it.
type tester interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// Running returns a Slack that serves on loopback until the test ends.
func Running(t tester, o Options) *Server {
	t.Helper()
	s := New(o)
	if err := s.Start(nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
