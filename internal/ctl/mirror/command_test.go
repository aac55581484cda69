package mirror

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/quorate/quorate/internal/ctl/command"
)

func TestCommand_usage(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, "--from names no member"},
		{[]string{"--from=a:1", "--from-cert=x"}, "--from-cert and --from-key need each other"},
		{[]string{"--from=a:1", "--from-user=u"}, "--from-user u needs a password: give --from-password, or --from-user NAME:PASSWORD"},
		{[]string{"--from=a:1", "--to=b:1", "--quiet=0s"}, "--quiet 0s: give a time, such as 5s"},
		{[]string{"--from=a:1", "--to=b:1", "--max-txn-ops=1"}, "--max-txn-ops 1: give at least 2"},
		{[]string{"--from=a:1", "--to=b:1", "-o=xml"}, `--output "xml": choose text or json`},
	} {
		var out bytes.Buffer
		c := Command(command.Streams{Out: &out, Err: &out})
		c.SetArgs(row.args)
		c.SilenceErrors, c.SilenceUsage = true, true
		if err := c.ExecuteContext(t.Context()); err == nil || err.Error() != row.want {
			t.Errorf("%q: got %v, want %s", row.args, err, row.want)
		}
	}
}

// Ensure that the verdict is in plain words, and that what differs ends the command with a status of its own.
func TestOutput_conclude(t *testing.T) {
	for _, row := range []struct {
		verdict Verdict
		want    string
		err     error
	}{
		{Verdict{SourceRevision: 9, SameRevisions: true, Keys: 3, Leases: 1, Users: "equal", Safe: true},
			"compared 3 keys and 1 lease at revision 9 of the source\nusers and roles: equal\n" +
				"revisions: equal; clients may watch on from the revision that they have seen\n" +
				"SAFE: the target has all that the source has; clients may be switched. Do not let any write to the source again\n", nil},
		{Verdict{SourceRevision: 9, Keys: 3, Users: "equal", Differences: 1, Examples: []string{`key "a" is missing at the target`}},
			"compared 3 keys and 0 leases at revision 9 of the source\nusers and roles: equal\n" +
				"revisions: new; clients that watch must list again\n  key \"a\" is missing at the target\n" +
				"NOT SAFE: 1 difference; clients must stay at the source\n", command.ErrQuiet},
	} {
		var out bytes.Buffer
		o := output{Streams: command.Streams{Out: &out, Err: &out}}
		if err := o.conclude(&row.verdict); err != row.err || out.String() != row.want {
			t.Errorf("got %v and\n%s\nwant %v and\n%s", err, out.String(), row.err, row.want)
		}
	}
}

func TestEqual(t *testing.T) {
	a := mvccpb.KeyValue{Key: []byte("a"), Value: []byte("1"), Lease: 7, CreateRevision: 2, ModRevision: 3, Version: 2}
	other := func(change func(*mvccpb.KeyValue)) *mvccpb.KeyValue {
		b := &mvccpb.KeyValue{Key: []byte("a"), Value: []byte("1"), Lease: 7, CreateRevision: 2, ModRevision: 3, Version: 2}
		change(b)
		return b
	}
	for name, row := range map[string]struct {
		b             *mvccpb.KeyValue
		loose, strict bool
	}{
		"same":     {other(func(*mvccpb.KeyValue) {}), true, true},
		"nothing":  {nil, false, false},
		"value":    {other(func(b *mvccpb.KeyValue) { b.Value = nil }), false, false},
		"lease":    {other(func(b *mvccpb.KeyValue) { b.Lease = 0 }), false, false},
		"revision": {other(func(b *mvccpb.KeyValue) { b.ModRevision++ }), true, false},
		"version":  {other(func(b *mvccpb.KeyValue) { b.Version++ }), true, false},
	} {
		if equal(&a, row.b, false) != row.loose || equal(&a, row.b, true) != row.strict {
			t.Errorf("%s: got %v, %v", name, equal(&a, row.b, false), equal(&a, row.b, true))
		}
	}
}

// Ensure that --cutover says at once that it waits because the source changes, and what to do.
func TestOutput_sourceChanges(t *testing.T) {
	var errs bytes.Buffer
	o := &output{Streams: command.Streams{Err: &errs}, quiet: 5 * time.Second}
	o.show(Progress{Stage: "following"})
	o.show(Progress{Stage: "following", Changes: true})
	o.show(Progress{Stage: "following", Changes: true})
	const want = "the source still changes, and --cutover waits until nobody has written there for 5s: stop the clients that write\n"
	if got := errs.String(); strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want two lines, and the second with %q", got, want)
	}
}
