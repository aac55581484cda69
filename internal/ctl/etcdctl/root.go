package etcdctl

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3/command"
)

// The version of the release of etcd that this etcdctl matches, and that of its API.
const (
	version    = "3.7.3"
	apiVersion = "3.7"
)

// Variables of the environment begin so: ours, and etcdctl's.
const (
	ourPrefix   = "QUORATE_"
	theirPrefix = "ETCDCTL_"
)

// readable is the format of --write-out that is ours: etcdctl's JSON, with keys and values as text. Bytes that are no text stay
// in base64, under another name, so that a reader never has to guess.
const readable = "readable"

// Defaults of etcdctl's flags.
const (
	defaultEndpoint         = "127.0.0.1:2379"
	defaultDialTimeout      = 2 * time.Second
	defaultCommandTimeout   = 5 * time.Second
	defaultKeepAliveTime    = 2 * time.Second
	defaultKeepAliveTimeout = 6 * time.Second
)

// formats that --write-out may name; the last one is ours.
var formats = []string{"fields", "json", "protobuf", "simple", "table", readable}

// newRoot makes etcdctl's commands under a name. Its flags are global variables: the root made last is the one to execute.
func newRoot(name string) *cobra.Command {
	root := &cobra.Command{Use: name, Short: "The commands of etcdctl, with its flags, formats and exit statuses",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name}} // it may have two words
	addFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("write-out", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveDefault))
	root.AddGroup(command.NewKVGroup(), command.NewClusterMaintenanceGroup(), command.NewConcurrencyGroup(),
		command.NewAuthenticationGroup(), command.NewUtilityGroup())
	root.AddCommand(
		command.NewGetCommand(), command.NewPutCommand(), command.NewDelCommand(), command.NewTxnCommand(),
		command.NewCompactionCommand(), command.NewWatchCommand(), command.NewLeaseCommand(),
		command.NewAlarmCommand(), command.NewDefragCommand(), command.NewEndpointCommand(),
		command.NewMoveLeaderCommand(), command.NewMemberCommand(), command.NewSnapshotCommand(),
		command.NewDowngradeCommand(), command.NewLockCommand(), command.NewElectCommand(),
		command.NewAuthCommand(), command.NewUserCommand(), command.NewRoleCommand(),
		command.NewCheckCommand(), command.NewMakeMirrorCommand(), command.NewCompletionCommand(),
		newVersion(), command.NewOptionsCommand(root),
	)
	command.SetHelpCmdGroup(root)
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, words []string) {
		help(c, words)
		fmt.Fprintf(c.OutOrStdout(), "%s options lists the flags that all commands have.\n", name)
	})
	return root
}

// newVersion is etcdctl's, but for the number: etcd's module tells that of the library which was linked.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of etcdctl that this one is as good as",
		Run: func(c *cobra.Command, _ []string) {
			fmt.Fprintf(c.OutOrStdout(), "etcdctl version: %s\nAPI version: %s\n", version, apiVersion)
		},
	}
}

// addFlags adds the flags that all of etcdctl's commands have. They look them up by name.
func addFlags(f *pflag.FlagSet) {
	f.StringSlice("endpoints", []string{defaultEndpoint}, "members to connect to, separated by commas")
	f.Bool("debug", false, "log what the client does")
	f.StringP("write-out", "w", "simple", "output format: fields, json, protobuf, simple, table, or readable: JSON with keys "+
		"and values as text")
	f.Bool("hex", false, "print bytes in hexadecimal")
	f.Duration("dial-timeout", defaultDialTimeout, "how long a connection may take")
	f.Duration("command-timeout", defaultCommandTimeout, "how long a short command may take, once connected")
	f.Duration("keepalive-time", defaultKeepAliveTime, "how often an idle connection is tested")
	f.Duration("keepalive-timeout", defaultKeepAliveTimeout, "how long such a test may take")
	f.Int("max-request-bytes", 0, "largest request that is sent; 0: 2 MiB")
	f.Int("max-recv-bytes", 0, "largest answer that is accepted; 0: 2 GiB")
	f.Bool("insecure-transport", true, "connect without TLS unless an endpoint or a certificate asks for it")
	f.Bool("insecure-discovery", true, "accept endpoints without TLS from DNS")
	f.Bool("insecure-skip-tls-verify", false, "do not check the certificates of the members; for tests")
	f.String("cert", "", "file of the certificate to show to members that ask for one")
	f.String("key", "", "file of the key of --cert")
	f.String("cacert", "", "file of certificates that may sign those of the members")
	f.String("auth-jwt-token", "", "token to log in with, instead of --user and --password")
	f.String("user", "", "user, as NAME or NAME:PASSWORD; without a password it is asked for")
	f.String("password", "", "password of --user")
	f.StringP("discovery-srv", "d", "", "domain whose SRV records in DNS name the members")
	f.String("discovery-srv-name", "", "service name in those records")
}
