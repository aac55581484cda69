package process_test

import "testing"

// TestEnableAuth turns authentication on by the command for jobs, again, and with another password, which changes nothing.
func TestEnableAuth(t *testing.T) {
	t.Parallel()
	e := startFirst(t)
	n := e.nodes[0]
	acked := e.fill(n)
	run := func(status int, password, says string) {
		t.Helper()
		e.finish(e.begin("enable-auth", "--user=root:"+password, "--endpoints="+n.client), status, says)
	}
	e.finish(e.begin("enable-auth", "--user=app:x", "--endpoints="+n.client), 2, "give the password of root")
	run(0, "rootpw", "authentication is on\n")
	run(0, "rootpw", "nothing to do")
	run(1, "other", "log in as root: authentication failed")
	e.finish(e.begin("get", "k", "--endpoints="+n.client), 1, "authentication is enabled: give --user")
	root := e.login("root", n)
	for key, value := range acked {
		if answer, err := root.Get(t.Context(), key); err != nil || len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != value {
			t.Fatalf("%s: got %v, %v; want %q", key, answer, err, value)
		}
	}
}
