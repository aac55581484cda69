package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Request is what to restore, in the words of the command line.
type Request struct {
	From            string // a snapshot, a database of etcd, or a data directory of etcd
	FromWALDir      string // of the etcd whose data directory From is
	DataDir, WALDir string
	SkipHashCheck   bool
	BumpRevision    uint64
	Member          []string // flags that say which member of which cluster this is
	Token           string   // of them, if it was drawn for this restore
	Progress        func(done, total int64)
	Backup          *Backup // instead of From
}

// Backup is a continuous backup, and the state of it that is wanted.
type Backup struct {
	Store   objects.Store
	Catalog *backup.Catalog
	Target  backup.Target
	Place   string      // the place in words
	Scratch string      // where a scratch directory is made; of a restore it is beside the data directory
	Damaged func(error) // is told of objects that other ones replace
	Open    backup.Opener
}

// Proof is a state of a continuous backup that was restored, and whose chain has the sum that the cluster's had.
type Proof struct {
	Entry     uint64   `json:"entry"` // the last one that was applied
	Sum       string   `json:"sum"`   // of the chain
	Revision  int64    `json:"revision"`
	Time      string   `json:"time"`
	BaseEntry uint64   `json:"base_entry"`
	Segments  int      `json:"segments"`
	Entries   int      `json:"entries"` // applied after the base
	Branches  int      `json:"branches"`
	Damaged   []string `json:"damaged,omitempty"` // objects that others replaced
}

// Restored is what was restored.
type Restored struct {
	DataDir   string `json:"data_dir"`
	Member    string `json:"member"`
	MemberID  string `json:"member_id"`
	ClusterID string `json:"cluster_id"`
	Members   int    `json:"members"`
	Revision  int64  `json:"revision"`
	Compacted int64  `json:"compact_revision,omitempty"`
	Keys      int    `json:"keys"`
	Versions  int    `json:"versions"`
	Leases    int    `json:"leases"`
	Users     int    `json:"users"`
	Roles     int    `json:"roles"`
	Auth      bool   `json:"auth_enabled"`
	Alarms    int    `json:"alarms_dropped,omitempty"`
	Limits    int    `json:"limits,omitempty"` // of a continuous backup alone, as the rest
	Audit     bool   `json:"audit_policy,omitempty"`
	Proof     *Proof `json:"proof,omitempty"`
	// Token is the --initial-cluster-token that was drawn for this restore; empty: none was.
	Token string `json:"initial_cluster_token,omitempty"`
}

// Restorer makes a data directory. The server is one.
type Restorer func(ctx context.Context, r *Request) (*Restored, error)

const restoreHelp = `Make the data directory of a new member from a snapshot of Quorate or of etcd 3.5 to 3.7.

This is for a cluster that is lost, and for a new one. If one member lost its disk while others of its cluster serve,
restore nothing: all writes since the backup would be lost. Start that member with an empty directory and its flags,
--initial-cluster or --join among them, and run "quorate member reset NAME" at a member that serves.

Do this once for each member of the new cluster, from the same file and with the same --initial-cluster and
--initial-cluster-token, then start the members as usual: the directory says which member of which cluster each one is. All
revisions, leases (whose time begins anew), users and roles are those of the file; the cluster and its id are new. Members
that were restored from different files never meet. Restore each time with another --initial-cluster-token: a member of an
earlier restore that was forgotten has the same ids, and is in the way of the new member whose place it takes. An interrupted
restore leaves a directory that no member starts on; repeat the command.

FILE may also be the database of a stopped etcd (member/snap/db, with --skip-hash-check), or its whole data directory: then the
log is read, too, and the restore is refused if the database lacks writes that the log has.

After a disaster clients may have seen revisions that the file does not have. --bump-revision 1000000000 --mark-compacted
goes on far above these and forgets the history, so that every client which watches begins anew.`

func newRestore(s command.Streams, restore Restorer) *cobra.Command {
	var r Request
	var compacted bool
	var format string
	c := &cobra.Command{
		Use: "restore FILE --data-dir DIR", Short: "Make the data directory of a new member from a snapshot", Long: restoreHelp,
		Example: "  quorate snapshot restore backup.db --name m1 --data-dir /var/lib/quorate \\\n" +
			"    --initial-cluster m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=http://10.0.0.3:2380 \\\n" +
			"    --initial-advertise-peer-urls http://10.0.0.1:2380 --initial-cluster-token restored-1",
		Args: cobra.ExactArgs(1),
	}
	flags := c.Flags()
	flags.SortFlags = false
	member := r.AddFlags(flags)
	flags.StringVar(&r.FromWALDir, "from-wal-dir", "", "the --wal-dir of the etcd whose data directory FILE is, if it had one")
	flags.BoolVar(&r.SkipHashCheck, "skip-hash-check", false, "take a file that does not end with its checksum")
	flags.Uint64Var(&r.BumpRevision, "bump-revision", 0, "raise the revision by so much; needs --mark-compacted")
	flags.BoolVar(&compacted, "mark-compacted", false, "forget all history; needs --bump-revision")
	flags.Uint64("initial-memory-map-size", 0, "without effect: no file is mapped")
	_ = flags.MarkHidden("initial-memory-map-size") // fails for unknown flags only
	flags.StringVarP(&format, "output", "o", "text", "text or json")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case compacted != (r.BumpRevision > 0):
			return command.Usagef("--bump-revision and --mark-compacted need each other")
		case format != "text" && format != "json":
			return command.Usagef("--output %q: choose text or json", format)
		case restore == nil:
			return command.Refused(errors.New("this program restores nothing"))
		}
		r.From = args[0]
		member()
		return Restore(cmd.Context(), s, &r, restore, format == "json")
	}
	return c
}

// AddFlags adds the flags that say which directory of which member is made. member is to be called once they were read.
func (r *Request) AddFlags(flags *pflag.FlagSet) (member func()) {
	flags.StringVar(&r.DataDir, "data-dir", "", "directory to make; must not exist, or be empty (default NAME.etcd)")
	flags.StringVar(&r.WALDir, "wal-dir", "", "the --wal-dir that the member will be started with; must not exist, or be empty")
	values := map[string]*string{}
	rows := [][2]string{
		{"name", "name of this member (default \"default\")"},
		{"initial-cluster", "all members of the new cluster, as NAME=URL,… (default: this one alone)"},
		{"initial-cluster-token", "word that keeps clusters with equal members apart (default \"etcd-cluster\")"},
		{"initial-advertise-peer-urls", "peer URLs of this member (default http://localhost:2380)"},
		{keysource.KeyFileFlag, "encrypt the directory, with the --encryption-key-file that the member will be started with"},
		{keysource.KMSFlag, "encrypt it, with the --encryption-kms that the member will be started with"},
		{"memory", "the --memory that the member will be started with: a snapshot with more leases than fit is refused"},
	}
	for _, f := range rows {
		values[f[0]] = flags.String(f[0], "", f[1])
	}
	return func() {
		for _, f := range rows {
			if flags.Changed(f[0]) {
				r.Member = append(r.Member, "--"+f[0]+"="+*values[f[0]])
			}
		}
	}
}

// Restore makes the directory, and prints what it holds.
func Restore(ctx context.Context, s command.Streams, r *Request, restore Restorer, asJSON bool) error {
	var last time.Time
	if s.Terminal {
		r.Progress = func(done, total int64) {
			if time.Since(last) > time.Second/2 {
				last = time.Now()
				fmt.Fprintf(s.Err, "\rread %s of %s", progress.Size(done), progress.Size(total))
			}
		}
	}
	done, err := restore(ctx, r)
	if err == nil {
		done.Token = r.Token
	}
	if !last.IsZero() {
		fmt.Fprint(s.Err, "\r\x1b[K")
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refusedFile(err)
	case asJSON:
		return command.PrintJSON(s.Out, done)
	}
	if r.Backup != nil {
		return printRestored(s, r.Backup.Place, done)
	}
	return printRestored(s, r.From, done)
}

func printRestored(s command.Streams, from string, d *Restored) error {
	history := "all history since the compaction at revision " + fmt.Sprint(d.Compacted)
	switch d.Compacted {
	case 0:
		history = "all history"
	case d.Revision:
		history = "no history before it"
	}
	security := "authentication is off"
	if d.Auth {
		security = "authentication is on"
	}
	fmt.Fprintf(s.Out, "restored %s from %s\n", d.DataDir, from)
	if p := d.Proof; p != nil {
		fmt.Fprintf(s.Out, "  proved    entry %d, revision %d, of %s: the chain has the cluster's sum %s\n", p.Entry,
			p.Revision, p.Time, p.Sum)
	}
	fmt.Fprintf(s.Out, "  contents  revision %d, with %s; %s, %s\n", d.Revision, history,
		plural.Of(d.Keys, "key"), plural.Of(d.Leases, "lease"))
	fmt.Fprintf(s.Out, "  users     %s, %s; %s\n", plural.Of(d.Users, "user"), plural.Of(d.Roles, "role"), security)
	fmt.Fprintf(s.Out, "  member    %s (%s), of %d; cluster %s\n", d.Member, d.MemberID, d.Members, d.ClusterID)
	if d.Alarms > 0 {
		fmt.Fprintf(s.Out, "  left out  %s of the members that wrote the file\n", plural.Of(d.Alarms, "alarm"))
	}
	since, again := from+" was made", "from the same file"
	if p := d.Proof; p != nil {
		fmt.Fprintf(s.Out, "  limits    %s; %s\n", plural.Of(d.Limits, "limit"), auditWords(d.Audit))
		fmt.Fprint(s.Out, "  not kept  the job of the backup: once the new cluster runs, `quorate backup start URL "+
			"--recipient … --keep …` with a new prefix begins one, in the clear without --recipient\n")
		since, again = p.Time, fmt.Sprintf("with --at entry:%d", p.Entry)
		if d.Token != "" {
			again += " --initial-cluster-token " + d.Token
		}
	}
	next := "start it"
	if d.Members > 1 {
		fmt.Fprintf(s.Out, "first: if other members of the old cluster run and serve, do not go on: what was written since "+
			"%s would be lost. To go back to this state, stop them all. If only %s was lost, %s\n",
			since, d.Member, typed.StartOver(d.DataDir, "it", "", d.Member))
		next = "if none serves, do the same for the other members, " + again + ", then start all"
	}
	_, err := fmt.Fprintf(s.Out, "next: %s; this one with --data-dir %s\n", next, d.DataDir)
	return err
}

func auditWords(policy bool) string {
	if policy {
		return "the policy of the audit"
	}
	return "no policy of an audit"
}
