package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/place"
	"github.com/quorate/quorate/internal/storage/objects/retry"
)

// readMemory is what reading a backup holds for the objects that are under way, beside the segments (package replay).
const readMemory = 128 << 20

// readPatience is for a restore, which is of no use without its end.
var readPatience = retry.Policy{Attempts: 8, First: 500 * time.Millisecond, Most: 20 * time.Second}

// source is a continuous backup at a place, which is named by the command line, or by the running cluster that ships it.
type source struct {
	streams command.Streams
	conn    *command.Connection // nil: a command that is no client, or has one of its own
	cmd     *cobra.Command
	url     string
	cluster string
	history string // the state with which it ends; empty: the one that leads to the newest state
	// identities are files; reads decrypts with them, and is nil if there are none.
	identities []string
	reads      backup.Opener
	running    consensus.ClusterID // whose backup is meant, unless --cluster says otherwise; zero: nobody asked the cluster

	at      *place.Place
	store   *place.Store
	catalog *backup.Catalog
	// lists lets open take a place with several clusters when none was chosen: it returns them in clusters, and no catalog.
	lists    bool
	clusters *listedClusters
}

// addFlags gives a command the flags of a source. Those of a client come last: the caller calls addClient.
func (c *source) addFlags(cmd *cobra.Command) {
	c.cmd, c.conn = cmd, command.NewConnection(c.streams)
	cmd.Flags().StringVar(&c.url, "from", "", "the place: file:///DIRECTORY or s3://BUCKET/PREFIX?…, see quorate backup check "+
		"--help; without it, --endpoints of the running cluster say where its backup goes")
	c.addIdentity(cmd.Flags())
	cmd.Flags().StringVar(&c.cluster, "cluster", "", "the cluster's id, if the place has backups of several, or none of the "+
		"cluster at --endpoints")
}

func (c *source) addClient() { c.conn.AddClientTo(c.cmd) }

func (c *source) addIdentity(flags *pflag.FlagSet) {
	flags.StringArrayVar(&c.identities, "identity", nil, "file with a secret key of age that opens an encrypted backup; "+
		"may be given several times")
}

// open lists what the place has of one cluster. The caller closes c.store.
func (c *source) open(ctx context.Context) (err error) {
	switch {
	case c.url != "":
	case c.conn != nil && c.conn.Asked(c.cmd):
		if err := c.ask(ctx); err != nil {
			return err
		}
	default:
		return command.Usagef("say where the backup is: --from URL; or --endpoints of the running cluster that ships it")
	}
	if c.at, err = place.Parse(c.url); err != nil {
		return command.Usagef("%w", err)
	}
	if c.reads, err = seal.ReadIdentities(c.identities); err != nil {
		return command.Refused(fmt.Errorf("--identity: %w", err))
	}
	var id consensus.ClusterID
	if c.cluster != "" {
		n, err := strconv.ParseUint(c.cluster, 16, 64)
		if err != nil {
			return command.Usagef("--cluster %q: write the id in hexadecimal digits, as `quorate backup list` does", c.cluster)
		}
		id = consensus.ClusterID(n)
	}
	var end backup.Point
	if c.history != "" {
		if end, err = backup.ParsePoint(c.history); err != nil {
			return command.Usagef("--history %w", err)
		}
	}
	options := place.Options{FS: files.Disk, Getenv: c.streams.Env, Retry: readPatience, Memory: readMemory}
	if c.store, err = place.Open(c.at, options); err != nil {
		return command.Refused(explained(c.at, err))
	}
	if c.catalog, err = c.list(ctx, id); err == nil && c.history != "" && c.catalog != nil {
		c.catalog, err = c.catalog.History(end)
	}
	if err != nil {
		c.store.Close()
		return c.failed(ctx, err)
	}
	return nil
}

// addHistory adds the flag that chooses one history of several.
func (c *source) addHistory(flags *pflag.FlagSet) {
	flags.StringVar(&c.history, "history", "", "take only the history that ends with this state, ENTRY:SUM: if the place has "+
		"several, as after volumes were rolled back, a refusal and quorate backup list name each")
}

// ask lets the running cluster say where its backup goes. A cluster may name no files of this machine.
func (c *source) ask(ctx context.Context) error {
	var said *quoratepb.BackupStatus
	err := c.conn.Do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
		said, err = quoratepb.NewBackupClient(client.ActiveConnection()).Status(ctx, &quoratepb.BackupStatusRequest{})
		if err != nil {
			return err
		}
		return c.Identify(ctx, client)
	})
	switch {
	case err != nil:
		return err
	case said.GetGeneration() == 0:
		return command.Refused(errors.New("this cluster never had a continuous backup: `quorate backup start URL` " +
			"begins one, and --from URL names that of another cluster"))
	}
	at, err := place.Parse(said.GetPlace())
	if err != nil {
		return command.Refused(fmt.Errorf("the cluster names a place that makes no sense: %w", err))
	}
	if at.Credentials != "" || at.CA != "" {
		return command.Refused(errors.New("the cluster's URL of the place names files of its members: give --from URL with " +
			"credentials= and ca= of this machine"))
	}
	if at.Endpoint != "" { // a request there would be signed with what this machine has
		return command.Refused(fmt.Errorf("the cluster says that its backup is at a server of its own: %s. If that is right, "+
			"name it: --from %s", at, typed.Word(at.String())))
	}
	c.url = said.GetPlace()
	command.Say(c.streams.Err, "quorate: the cluster ships its backup to "+at.String())
	return nil
}

// Identify asks the cluster of a client for its id: the backup of another one is taken only if --cluster names it.
func (c *source) Identify(ctx context.Context, client *clientv3.Client) error {
	if c.cluster != "" {
		return nil
	}
	answer, err := client.MemberList(ctx)
	if err == nil {
		c.running = consensus.ClusterID(answer.Header.GetClusterId())
	}
	return err
}

// list lists what the place has of a cluster; zero: of the one that it has. Of several it returns nothing if c.lists.
func (c *source) list(ctx context.Context, id consensus.ClusterID) (*backup.Catalog, error) {
	if id == 0 {
		found, err := fetch.Clusters(ctx, c.store)
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, fmt.Errorf("%s has no backup of a cluster: check the URL, and with `quorate backup status` whether "+
				"the first base is complete", c.at)
		case slices.Contains(found, c.running):
			found = []consensus.ClusterID{c.running}
		case c.running != 0:
			return nil, command.Refused(fmt.Errorf("%s has nothing of this cluster (%v) yet; of another one, %v: if the "+
				"backup of that is meant, such as the one from before a restore, give --cluster with its id", c.at, c.running,
				found))
		case len(found) > 1:
			several, err := endsOf(ctx, c.store, found)
			if err != nil {
				return nil, err
			}
			if !c.lists {
				return nil, several.which(c.at)
			}
			c.clusters = several
			return nil, nil
		}
		id = found[0]
	}
	return fetch.Catalog(ctx, c.store, id)
}

// failed says what is wrong, with the exit status that belongs to it.
func (c *source) failed(ctx context.Context, err error) error {
	var known *command.Failure
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	case objects.Passing(err):
		return command.Unreachable(explained(c.at, err))
	case place.Advice(err) != "":
		return command.Refused(explained(c.at, err))
	}
	if errors.Is(err, backup.ErrSealed) {
		err = fmt.Errorf("%s: %w: --identity FILE", c.at, backup.ErrSealed)
	}
	return command.Refused(err)
}

// target is the flag --at. Times may also be written as `quorate undelete` takes them. One in the future is that of the last
// entry: this machine's clock may be behind those of the members.
func target(word string) (backup.Target, error) {
	t, err := backup.ParseTarget(word)
	if err == nil {
		return t, nil
	}
	at, isTime := command.ReadTime(word, time.Now())
	switch {
	case isTime && at.UnixMilli() <= 0:
		return t, command.Usagef("--at %q is no time after the beginning of 1970", word)
	case isTime:
		return backup.Target{Time: at.UnixMilli()}, nil
	}
	return t, command.Usagef("--at %q: write \"latest\", %s, a revision, or entry:INDEX", word, command.WhenHelp)
}
