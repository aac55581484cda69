package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
)

const long = `Run a command of quorate at a cluster in Kubernetes.

CLUSTER is a QuorateCluster, or a release of the chart "quorate", in the namespace; where both have the name,
quoratecluster/NAME or release/NAME. COMMAND is any command of quorate with its
own flags, such as status, doctor, get, member list, top, backup status; see: kubectl quorate CLUSTER help.

Connections go through the API server to the pods, as with kubectl port-forward. Certificates are those of the pods, and root's
password comes from the Secret that the cluster names, unless COMMAND has --user. You need these rights in the namespace: get
quorateclusters.quorate.io (for a release also statefulsets.apps), list pods, get and create pods/portforward, and get the
Secrets of the authority and of root's password.`

const example = `  kubectl quorate db status
  kubectl quorate -n prod --context eu db doctor
  kubectl quorate db get --prefix /registry/ --user reader
  kubectl quorate db user list`

// Run executes a command line without the program's name and returns the status to exit with, which is that of the command.
func Run(ctx context.Context, args []string, s command.Streams, connect Connect) int {
	o := &Options{}
	root := newRoot(ctx, o, s, connect)
	if words, ok := completes(root, args); ok {
		return ctl.Run(ctx, words, s)
	}
	status := command.StatusOK
	root.RunE = func(c *cobra.Command, words []string) error {
		if len(words) == 0 {
			return c.Help()
		}
		if len(words) == 1 {
			return command.Usagef("which command? Write: kubectl quorate %s COMMAND, such as status", words[0])
		}
		var err error
		status, err = run(ctx, o, words[0], words[1:], s, connect)
		return err
	}
	root.SetArgs(args)
	err := root.Execute()
	var failure *command.Failure
	switch {
	case err == nil:
		return status
	case errors.As(err, &failure):
		command.Say(s.Err, "kubectl quorate: "+failure.Error())
		return failure.Status
	case ctx.Err() != nil:
		return command.StatusInterrupted
	}
	command.Say(s.Err, "kubectl quorate: "+err.Error())
	return command.StatusUsage
}

func newRoot(ctx context.Context, o *Options, s command.Streams, connect Connect) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl quorate [FLAGS] CLUSTER COMMAND [ARGS]", Short: "Run a command of quorate at a cluster in Kubernetes",
		Long: long, Example: example, SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
		RunE:                  func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: func(_ *cobra.Command, words []string, last string) ([]string, cobra.ShellCompDirective) {
			if len(words) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			k, err := connect(o)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			names, _ := k.clusters(ctx)
			return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, last) }),
				cobra.ShellCompDirectiveNoFileComp
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return command.Usagef("%w; flags of COMMAND stand behind it; see kubectl quorate --help", err)
	})
	flags := root.Flags()
	flags.SetInterspersed(false) // what follows the cluster is the command's
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file of the configuration of kubectl (or KUBECONFIG)")
	clientcmd.BindOverrideFlags(&o.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	flags.StringVar(&o.tlsSecret, "tls-secret", "", "Secret with ca.crt, tls.crt and tls.key, instead of those of the pods")
	flags.StringVar(&o.member, "member", "", "pod of the only member to ask, for commands about one member, such as key rotate")
	flags.StringVar(&o.userSecret, "user-secret", "", "Secret with username (absent: root) and password")
	return root
}

// completes tells whether a line asks for the completion of a command's word, and which line of quorate's own that is.
func completes(root *cobra.Command, args []string) (line []string, ok bool) {
	if len(args) < 2 || !strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil, false
	}
	before, last := args[1:len(args)-1], args[len(args)-1]
	flags := root.Flags()
	if flags.Parse(before) != nil || flags.NArg() == 0 {
		return nil, false
	}
	return append(append([]string{args[0]}, flags.Args()[1:]...), last), true
}

// run runs a command at a cluster.
func run(ctx context.Context, o *Options, name string, words []string, s command.Streams, connect Connect) (int, error) {
	if err := refused(words); err != nil {
		return 0, err
	}
	s.Environ = withoutOthers(s.Environ)
	if words[0] == "help" || asksHelp(words) { // no cluster is needed for it
		return ctl.Run(ctx, words, s), nil
	}
	k, err := connect(o)
	if err != nil {
		return 0, err
	}
	c, err := k.find(ctx, name)
	if err != nil {
		return 0, err
	}
	if err := c.choose(o.member, words); err != nil {
		return 0, err
	}
	road, err := k.road(ctx, c, o)
	if err != nil {
		return 0, err
	}
	defer road.close()
	if ofOneMember(words) {
		road.narrow()
	}
	settings := []string{"ENDPOINTS=" + strings.Join(road.endpoints(), ",")}
	if !slices.ContainsFunc(words, func(w string) bool { return w == "--user" || strings.HasPrefix(w, "--user=") }) {
		login, err := k.login(ctx, c, o)
		if err != nil {
			return 0, err
		}
		settings = append(settings, login...)
	}
	for _, warning := range c.warnings {
		command.Say(s.Err, "warning: "+warning)
	}
	if ctl.RunsEtcdctl(words, s) {
		return runChild(ctx, road, settings, words, s)
	}
	for _, setting := range settings {
		s.Environ = append(s.Environ, "QUORATE_"+setting)
	}
	return ctl.Run(command.WithDialer(ctx, road.dial), words, s), nil
}

// local are commands that reach no cluster, or that make one.
var local = []string{"dev", "restore", "etcdutl", "gateway", "grpc-proxy", "config", "docs", "log", "completion", "recover",
	"set-address"}

// refused are commands that need no plugin, and flags of commands that the plugin sets itself.
func refused(words []string) error {
	if words[0] == "recover" || words[0] == "restore" {
		return command.Usagef("%s works on the files of a member that is stopped: docs/kubernetes.md says how, for a release "+
			"and for a QuorateCluster", words[0])
	}
	if slices.Contains(local, words[0]) {
		return command.Usagef("%s works on files or processes of this machine, not on a cluster: use quorate %[1]s", words[0])
	}
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		switch flag {
		case "--":
			return nil
		case "--endpoints", "--cacert":
			return command.Usagef("%s: the plugin finds the members and their certificates itself: leave it out; to reach "+
				"other addresses use quorate instead of kubectl quorate", flag)
		}
	}
	return nil
}

// ofOneMember tells whether a command, ours or etcdctl's, asks one member and refuses several: any member that serves will do.
func ofOneMember(words []string) bool {
	if words[0] == "etcdctl" {
		words = words[1:]
	}
	return len(words) > 1 && words[0] == "snapshot" && words[1] == "save"
}

// eachHas are commands about what each member has for itself: which one is meant must be said.
var eachHas = []string{"key"}

// choose leaves the pod of a name, if one is given.
func (c *cluster) choose(member string, words []string) error {
	var names []string
	for _, p := range c.pods {
		names = append(names, p.name)
	}
	slices.Sort(names)
	switch at := slices.IndexFunc(c.pods, func(p *pod) bool { return p.name == member }); {
	case at >= 0:
		c.pods = c.pods[at : at+1]
	case member != "":
		return command.Unreachable(fmt.Errorf("no pod %s of %s runs; these do: %s", member, c.name, strings.Join(names, ", ")))
	case len(c.pods) > 1 && slices.Contains(eachHas, words[0]):
		line := strings.Join(words[:min(2, len(words))], " ")
		return command.Usagef("%s is about one member, and %s has %d: kubectl quorate -n %s --member %s %[2]s %[1]s", line,
			c.typed, len(names), c.namespace, names[0])
	}
	return nil
}

func asksHelp(words []string) bool {
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	return slices.Contains(words, "--help") || slices.Contains(words, "-h")
}

// withoutOthers leaves out variables that name other members, users and certificates: the shell has them for another cluster.
func withoutOthers(environ []string) (kept []string) {
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		_, ours := strings.CutPrefix(name, "QUORATE_")
		_, theirs := strings.CutPrefix(name, "ETCDCTL_")
		named := slices.ContainsFunc(named, func(n string) bool { return strings.HasSuffix(name, "_"+n) })
		if !(ours || theirs) || !named {
			kept = append(kept, variable)
		}
	}
	return kept
}

var named = []string{"ENDPOINTS", "USER", "PASSWORD", "CACERT", "CERT", "KEY", "DISCOVERY_SRV", "INSECURE_SKIP_TLS_VERIFY",
	"INSECURE_TRANSPORT"}
