package backup_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// fakeBackup serves the service Backup with answers of a test.
type fakeBackup struct {
	quoratepb.UnimplementedBackupServer
	pb.UnimplementedClusterServer
	cluster uint64
	status  *quoratepb.BackupStatus
	started []*quoratepb.StartBackupRequest
	refusal error

	reported []*quoratepb.ReportBackupRequest
}

func (f *fakeBackup) Status(context.Context, *quoratepb.BackupStatusRequest) (*quoratepb.BackupStatus, error) {
	return f.status, f.refusal
}

func (f *fakeBackup) Start(_ context.Context, r *quoratepb.StartBackupRequest) (*quoratepb.BackupStatus, error) {
	f.started = append(f.started, r)
	return f.status, f.refusal
}

// Report implements quoratepb.BackupServer.
func (f *fakeBackup) Report(_ context.Context, r *quoratepb.ReportBackupRequest) (*quoratepb.BackupStatus, error) {
	f.reported = append(f.reported, r)
	return f.status, f.refusal
}

func (f *fakeBackup) Stop(context.Context, *quoratepb.StopBackupRequest) (*quoratepb.BackupStatus, error) {
	f.status.On = false
	return f.status, f.refusal
}

// MemberList tells the id of the cluster.
func (f *fakeBackup) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: f.cluster}}, nil
}

// listen starts the server, and returns its address.
func (f *fakeBackup) listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	quoratepb.RegisterBackupServer(server, f)
	pb.RegisterClusterServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// serve starts the server, and returns a function that runs `quorate backup` against it.
func (f *fakeBackup) serve(t *testing.T) func(args ...string) ctltest.Result {
	t.Helper()
	address := f.listen(t)
	return func(args ...string) ctltest.Result {
		return ctltest.Run(t, t.Context(), command.Streams{}, "", append([]string{"backup", "--endpoints", address}, args...)...)
	}
}

const minute = 60_000

// testRecipient is one whose identity nobody has.
const testRecipient = "age1k0xkuylettylk8x7lg4hy39a34kfe88kx3wwdzw4f20ghhjkgu6snkpnlz"

// said is whether a command ended well, and printed a text among others.
func said(t *testing.T, got ctltest.Result, text string) {
	t.Helper()
	if got.Status != command.StatusOK || !strings.Contains(got.Out, text) {
		t.Errorf("no %q in %+v", text, got)
	}
}

// Ensure that a status says in words where the backup goes, who ships it, how far it is and what is wrong with it, and nothing
// else as JSON; and that a member's words do not reach the terminal as they are.
func TestStatus(t *testing.T) {
	f := &fakeBackup{status: &quoratepb.BackupStatus{NowMs: 100 * minute}}
	run := f.serve(t)
	said(t, run("status"), "there is no continuous backup")
	f.status = &quoratepb.BackupStatus{NowMs: 100 * minute, Generation: 3, On: true, Place: "s3://b/p", BaseSeconds: 21600, SealMs: 1000}
	said(t, run("status"), "nobody ships it yet")
	said(t, run("status"), "nothing can be restored yet")
	f.status.Member, f.status.MemberName, f.status.Turn, f.status.ReportedMs = 7, "m2", 4, 99*minute
	f.status.Restorable = &quoratepb.BackupMark{Index: 90, Revision: 80, TimeMs: 98 * minute}
	f.status.Base = &quoratepb.BackupMark{Index: 70, Revision: 60, TimeMs: 40 * minute}
	f.status.Gaps, f.status.Gap = 2, &quoratepb.BackupHole{After: 5, Until: 9, TimeMs: 50 * minute}
	f.status.Trouble = "full\x1b[2J"
	said(t, run("status"), "it is not encrypted: who can read the place can read all keys")
	f.status.Recipients = []string{"age1a", "age1b"}
	f.status.Verified = &quoratepb.BackupProven{Revision: 50, TimeMs: 60 * minute, TookMs: minute, StateMs: 58 * minute, Proven: true,
		Member: 9, MemberName: "m3", Bases: 2}
	f.status.Proven, f.status.VerifySeconds = f.status.Verified, 86400
	got := run("status")
	for _, want := range []string{"the backup goes to s3://b/p: entries after 1 s, a base every 6h00m",
		"it is shipped by m2, and a member reported 1m00s ago", "a restore reaches revision 80, as of 2m00s ago",
		"the newest base is of revision 60, as of 1h00m ago", "2 gaps: states within cannot be restored; the last one is after entry 5",
		"it is encrypted to 2 recipients", "members cannot prove an encrypted backup; only an operator can: " +
			"`quorate backup verify --from URL --identity FILE --report --endpoints MEMBERS`",
		"a restore of revision 50 was proven 40m00s ago by m3, in 1m00s; 2 bases have the contents that the log leads to",
		"the place takes nothing: full", "`quorate backup check s3://b/p`, on the machine of the member that ships, and as its user, says what to do"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("no %q in:\n%s", want, got.Out)
		}
	}
	if strings.Contains(got.Out, "\x1b") {
		t.Errorf("a member's bytes reach the terminal: %q", got.Out)
	}
	f.status.Recipients = nil
	said(t, run("status"), "members prove it every 1d00h")
	f.status.Keep = "48h,daily:3"
	said(t, run("status"), "rule 2d,daily:3: any moment of the last 2 days can be restored; the last base of each of 3 days\n")
	f.status.Retention = &quoratepb.BackupRetained{TimeMs: 90 * minute, FromMs: 50 * minute, Bases: 7, Removed: 12, Bytes: 5 << 20,
		Why: "delete \x1b: the credentials may not do this here"}
	got = run("status")
	said(t, got, "retention removed 12 objects, 5.0 MiB, 10m00s ago; it keeps any moment since 1970-01-01T00:50:00.000Z, and 7 bases")
	said(t, got, "retention removes less than the rule lets it: delete ")
	f.status.Verified = &quoratepb.BackupProven{TimeMs: 60 * minute, Why: "obj/aa is damaged", Failed: true, By: "root"}
	said(t, run("status"), "a restore failed 40m00s ago, tried by the operator root: obj/aa is damaged")
	said(t, run("status"), "a restore of revision 50 was proven 40m00s ago")
	f.status.Verified = &quoratepb.BackupProven{TimeMs: 60 * minute, Why: "no room", Member: 9, MemberName: "m3"}
	f.status.Proving, f.status.ProvingName, f.status.ProvingSinceMs = 8, "m4", 99*minute
	said(t, run("status"), "no restore could be tried by m3 40m00s ago: no room")
	said(t, run("status"), "a restore is tried now by m4, since 1m00s")
	f.status.Verified = &quoratepb.BackupProven{TimeMs: 60 * minute, Why: "object obj/aa: gone", Damaged: 3, Proven: true, Member: 9}
	said(t, run("status"), "3 objects are damaged or gone, and the newest state was proven without: object obj/aa: gone")
	f.status.Verified = &quoratepb.BackupProven{TimeMs: 60 * minute, Why: "2 bases not compared", Proven: true, Member: 9}
	said(t, run("status"), "the last proof is not whole: 2 bases not compared")
	f.status.VerifySeconds, f.status.Verified, f.status.Proven, f.status.Proving = 0, nil, nil, 0
	said(t, run("status"), "members do not prove it (--verify-every 0)")
	said(t, run("status"), "no restore was tried yet")
	said(t, run("status", "-o", "json"), `"place":"s3://b/p"`)
	said(t, run("stop"), "the backup to s3://b/p is stopped")
}

// Ensure that the help of start says which flag of members allows a place, and where their keys come from.
func TestStart_help(t *testing.T) {
	got := ctltest.Run(t, t.Context(), command.Streams{}, "", "backup", "start", "--help")
	said(t, got, "--backup-places")
	said(t, got, "does not ask the place")
	if strings.Contains(got.Out, "the file\nthat URL names") {
		t.Errorf("the help says that the URL names a file: %s", got.Out)
	}
}

// Ensure that a start at another place says where the backup went until then, and how it goes on there.
func TestStart_elsewhere(t *testing.T) {
	f := &fakeBackup{status: &quoratepb.BackupStatus{Generation: 1, On: true, Place: "file:///b"}}
	run := f.serve(t)
	said(t, run("start", "file:///c"), "the former place, file:///b, keeps what is there: `quorate backup start file:///b`")
	f.status.Restorable = &quoratepb.BackupMark{Revision: 80}
	const former = "the former place, file:///b, keeps what is there, up to about revision 80: `quorate backup start file:///b` goes back to it"
	said(t, run("start", "file:///c"), former)
	long := "s3://b/" + strings.Repeat("p", 1900) + "?endpoint=https://s3.example"
	f.status.Place = long
	said(t, run("start", "file:///c"), "`quorate backup start '"+long+"'` goes back to it")
	f.status.Trouble = "full"
	said(t, run("status"), "`quorate backup check '"+long+"'`, on the machine")
	f.status.Place, f.status.Trouble = "file:///b", ""
	for _, same := range [][]string{{"start"}, {"start", "file:///b/"}, {"start", "file:///c", "-o", "json"}} {
		if got := run(same...); got.Status != command.StatusOK || strings.Contains(got.Out, "former place") {
			t.Errorf("%v: %+v", same, got)
		}
	}
}

// Ensure that start passes on what was given and nothing else, and refuses a URL that makes no sense, or has a secret, before it
// asks anybody.
func TestStart(t *testing.T) {
	f := &fakeBackup{status: &quoratepb.BackupStatus{Generation: 1, On: true, Place: "file:///b"}}
	run := f.serve(t)
	said(t, run("start", "file:///b", "--base-every=1h", "--verify-every=0s", "--seal-after=500ms", "--keep=14d"), "the backup goes to file:///b")
	said(t, run("start"), "the backup goes to file:///b")
	if len(f.started) != 2 || f.started[0].GetPlace() != "file:///b" || f.started[0].GetBaseSeconds() != 3600 ||
		f.started[0].GetSealMs() != 500 || f.started[0].VerifySeconds == nil ||
		f.started[1].GetPlace() != "" || f.started[1].VerifySeconds != nil ||
		f.started[0].GetKeep() != "14d" || f.started[1].GetKeep() != "" {
		t.Errorf("got %v", f.started)
	}
	recipientsFile := filepath.Join(t.TempDir(), "recipients")
	if err := os.WriteFile(recipientsFile, []byte("# ours\n\n"+testRecipient+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said(t, run("start", "file:///b", "--recipient", testRecipient, "--recipients-file", recipientsFile), "the backup goes to")
	if got := f.started[2].GetRecipients(); len(got) != 1 || got[0] != testRecipient {
		t.Errorf("got recipients %q", got)
	}
	said(t, run("start", "file:///c", "--in-the-clear"), "the backup goes to")
	if !f.started[3].GetInTheClear() {
		t.Errorf("got %v", f.started[3])
	}
	f.started = f.started[:2]
	for _, wrong := range [][]string{{"--recipient=AGE-SECRET-KEY-1HIDDEN"}, {"--recipient=hidden"}, {"--recipients-file=/gone/hidd"},
		{"--recipients-file=" + os.DevNull}, {"--in-the-clear", "--recipient=" + testRecipient}, {"/mnt"}, {"s3://key:hidden@b/p"}, {"file:///b", "--base-every=1500ms"},
		{"file:///b", "--verify-every=1500ms"},
		{"file:///b", "--log-bytes=1"}, {"file:///b", "--keep=14"}} {
		got := run(append([]string{"start"}, wrong...)...)
		if got.Status != command.StatusUsage || strings.Contains(strings.ToLower(got.Err), "hidden") {
			t.Errorf("%v: %+v", wrong, got)
		}
	}
	if len(f.started) != 2 {
		t.Errorf("wrong ones reach the cluster: %v", f.started)
	}
	f.refusal = status.Error(codes.Aborted, "another caller was faster")
	run("start").Want(t, command.StatusRefused, "", "another caller was faster")
}

// Ensure that commands which read a backup find it by the cluster that ships it, where --from is missing; that a cluster may name no files
// of the machine that asks; and that without either the command says what to do.
func TestSource_ofTheCluster(t *testing.T) {
	dir := t.TempDir()
	f := &fakeBackup{status: &quoratepb.BackupStatus{}}
	run := f.serve(t)
	for _, step := range []struct {
		generation uint64
		place, say string
		status     int
	}{
		{0, "", "never had a continuous backup", command.StatusRefused},
		{1, "file://" + dir, "ships its backup to file://" + dir, command.StatusRefused},
		{1, "file://" + dir, "has no backup of a cluster", command.StatusRefused},
		{1, "s3://bucket?endpoint=http://127.0.0.1:1&credentials=/etc/passwd", "names files of its members", command.StatusRefused},
		{1, "s3://bucket?ca=/etc/passwd", "names files of its members", command.StatusRefused},
		{1, "/etc", "names a place that makes no sense", command.StatusRefused},
	} {
		f.status.Generation, f.status.Place = step.generation, step.place
		if got := run("list"); got.Status != step.status || !strings.Contains(got.Err, step.say) {
			t.Errorf("%s: %+v, want %q", step.place, got, step.say)
		}
	}
	got := ctltest.Run(t, t.Context(), command.Streams{}, "", "backup", "list")
	if got.Status != command.StatusUsage || !strings.Contains(got.Err, "--from URL; or --endpoints") {
		t.Errorf("neither: %+v", got)
	}
}

// Ensure that a command which finds the place by the running cluster reads the backup of that cluster, and never takes that of another
// one that is alone in the place, unless --cluster names it.
func TestSource_ofAnotherCluster(t *testing.T) {
	dir, _ := shipped(t, 7)
	f := &fakeBackup{status: &quoratepb.BackupStatus{Generation: 1, Place: "file://" + dir}, cluster: cluster}
	run := f.serve(t)
	said(t, run("list"), "cluster abcdef\n")
	f.cluster = 0xb
	run("list").Want(t, command.StatusRefused, "", "has nothing of this cluster (b) yet; of another one, [abcdef]")
	said(t, run("list", "--cluster", "abcdef"), "cluster abcdef\n")
	said(t, run("list", "--from", "file://"+dir), "cluster abcdef\n")
}
