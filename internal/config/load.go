package config

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

const envPrefix = "ETCD_"

// Load reads the configuration from a command line without the program's name and from an environment in the form of
// os.Environ. It answers ErrHelp or ErrVersion where these were asked for, a *UsageError for a command line that
// cannot be read, and Faults for a configuration that cannot work.
func Load(args, environ []string) (Config, error) {
	c := Default()
	given, err := parseFlags(args)
	if err != nil {
		return Config{}, err
	}
	path := given.last("config-file")
	if path == "" {
		path = lookup(environ, envPrefix+"CONFIG_FILE")
	}
	var faults Faults
	if path != "" {
		faults = c.loadFile(path)
		c.warnOverruled(path, given)
	} else {
		if faults, err = c.loadFlags(given); err != nil {
			return Config{}, err
		}
		faults = append(faults, c.loadEnv(environ)...)
	}
	c.derive()
	c.warnIdle()
	c.warnTLS()
	c.warnDelay()
	faults = append(faults, c.faults()...)
	faults = append(faults, c.foundingFaults()...)
	if len(faults) > 0 {
		return Config{}, faults
	}
	return c, nil
}

// given is a command line as names and texts, in order.
type given []argument

type argument struct{ name, text string }

func (g given) last(name string) string {
	for _, a := range slices.Backward(g) {
		if a.name == name {
			return a.text
		}
	}
	return ""
}

// parseFlags reads arguments as Go's flag package does: one or two dashes, a value after = or as the next argument,
// switches without a value.
func parseFlags(args []string) (given, error) {
	var out given
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, ok := strings.CutPrefix(arg, "-")
		if !ok || name == "" {
			return nil, &UsageError{fmt.Sprintf("%q is neither a flag nor a command; see quorate --help", arg)}
		}
		name, _ = strings.CutPrefix(name, "-")
		if name == "" {
			if len(args) > 0 {
				return nil, &UsageError{fmt.Sprintf("%q is not a flag", args[0])}
			}
			break
		}
		name, text, hasText := strings.Cut(name, "=")
		if name == "h" || name == "help" {
			return nil, ErrHelp
		}
		if name == "version" && (!hasText || text == "true") {
			return nil, ErrVersion
		}
		s := find(name)
		if s == nil && name != "config-file" {
			return nil, &UsageError{fmt.Sprintf("unknown flag --%s%s", name, suggestFlag(name))}
		}
		switch {
		case hasText:
		case s != nil && s.value.isSwitch():
			text = "true"
		case len(args) == 0:
			return nil, &UsageError{fmt.Sprintf("flag needs an argument: --%s", name)}
		default:
			text, args = args[0], args[1:]
		}
		out = append(out, argument{name, text})
	}
	return out, nil
}

func find(name string) *setting {
	for i := range settings {
		if settings[i].name == name {
			return &settings[i]
		}
	}
	return nil
}

// loadFlags applies a command line. A malformed value is a usage error; etcd words it like Go's flag package, and
// its suites look for these words.
func (c *Config) loadFlags(args given) (Faults, error) {
	var faults Faults
	var malformed []string
	for _, a := range args {
		if a.name == "config-file" {
			continue
		}
		s := find(a.name)
		if s.filled && a.text == "" {
			malformed = append(malformed, fmt.Sprintf("--%s is empty: give %s, or leave the flag out", a.name, s.arg))
			continue
		}
		if err := s.value.set(c, a.text); err != nil {
			if s.secret {
				a.text = blank
			}
			malformed = append(malformed, fmt.Sprintf("invalid value %q for flag -%s: %v", a.text, a.name, err))
			continue
		}
		c.explicit[a.name] = true
	}
	if len(malformed) > 0 {
		return nil, &UsageError{strings.Join(malformed, "\n")}
	}
	for i := range settings {
		faults = append(faults, c.refusal(&settings[i], "--"+settings[i].name)...)
	}
	return faults, nil
}

// loadEnv applies the environment where the command line is silent.
func (c *Config) loadEnv(environ []string) Faults {
	var faults Faults
	known := map[string]bool{envPrefix + "CONFIG_FILE": true}
	for i := range settings {
		s := &settings[i]
		key := envPrefix + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
		known[key] = true
		text := lookup(environ, key)
		switch {
		case text == "":
		case c.explicit[s.name]:
			c.warn("%s is ignored because --%s is given", key, s.name)
		default:
			if err := s.value.set(c, text); err != nil {
				faults = append(faults, fmt.Sprintf("invalid value %q for %s: %v", text, key, err))
				continue
			}
			c.explicit[s.name] = true
			faults = append(faults, c.refusal(s, key)...)
		}
	}
	for _, pair := range environ {
		key, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(key, envPrefix) && !known[key] {
			c.warn("unknown environment variable %s is ignored", key)
		}
	}
	return faults
}

// refusal reports a setting that was given and cannot be honoured. A default that was written out changes nothing
// and is fine.
func (c *Config) refusal(s *setting, as string) Faults {
	if s.effect != refuse || !c.explicit[s.name] || s.value.text(c) == s.def {
		return nil
	}
	return Faults{as + ": " + s.reason}
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// warnIdle tells once of every setting that was given, differs from its default, and has no effect.
func (c *Config) warnIdle() {
	for i := range settings {
		s := &settings[i]
		if s.effect != idle || !c.explicit[s.name] {
			continue
		}
		if words := announced[s.name]; words != "" {
			c.warn("%s", words)
		}
		if s.value.text(c) != s.def {
			c.warn("--%s=%s is accepted for compatibility and has no effect: %s", s.name, s.value.text(c), s.reason)
		}
	}
	c.Warnings = append(c.Warnings, c.FeatureGates.idleGates()...)
	c.compat["v2-deprecation"] = find("v2-deprecation").def
}

// warnOverruled tells of flags beside a configuration file, which etcd drops in silence.
func (c *Config) warnOverruled(path string, args given) {
	var dropped []string
	for _, a := range args {
		if a.name != "config-file" {
			dropped = append(dropped, "--"+a.name)
		}
	}
	if len(dropped) > 0 {
		c.warn("%s replaces all flags and ETCD_ variables; ignored: %s", path, strings.Join(dropped, " "))
	}
}

func lookup(environ []string, key string) string {
	for _, pair := range slices.Backward(environ) {
		if k, v, _ := strings.Cut(pair, "="); k == key {
			return v
		}
	}
	return ""
}

// foundingFaults checks the settings that bootstrap a cluster, if they will be read. A member that has started before
// takes its cluster from its data directory, so faults in these settings, which manifests keep for years, are only a
// warning then.
func (c *Config) foundingFaults() Faults {
	faults := c.bootstrapFaults()
	if (len(c.Bootstrap.InitialCluster) > 1 || len(c.Bootstrap.Join) > 0) && c.Name == "default" {
		c.warn("members should have names of their own; this one is called \"default\"")
	}
	if !holdsFiles(c.Storage.DataDir) {
		c.warnUnreachable()
		c.warnNonMembers()
		return faults
	}
	for _, fault := range faults {
		c.warn("not read, and else refused, if %s holds a member already: %s", c.Storage.DataDir, fault)
	}
	if at := memberIndex(c.Bootstrap.InitialCluster, c.Name); at >= 0 &&
		!sameURLs(c.Bootstrap.InitialCluster[at].PeerURLs, c.Advertise.PeerURLs) {
		c.warn("--initial-advertise-peer-urls counts, unlike --initial-cluster: if the cluster knows this member "+
			"elsewhere, it is told that it is at %s now, once it answers there", joinURLs(c.Advertise.PeerURLs))
	}
	return nil
}

// holdsFiles tells whether a member has used the directory. A fresh volume may contain lost+found.
func holdsFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "lost+found" })
}

// warnUnreachable warns if other members are on other machines and this one advertises an address such as localhost.
func (c *Config) warnUnreachable() {
	others := slices.Clone(c.Bootstrap.Join)
	for _, m := range c.Bootstrap.InitialCluster {
		if m.Name != c.Name {
			others = append(others, m.PeerURLs...)
		}
	}
	elsewhere := slices.IndexFunc(others, func(u URL) bool { return u.Network() == "tcp" && !u.local() })
	for _, u := range c.Advertise.PeerURLs {
		if elsewhere >= 0 && u.local() {
			c.warn("this member advertises %s, which the member at %s cannot reach if it is on another machine; set "+
				"--initial-advertise-peer-urls to an address of this machine, here and in --initial-cluster of all", u,
				others[elsewhere])
		}
	}
}

// derive fills what follows from other settings: the data directory from the name, the advertised URLs from those
// listened on, the founding configuration from name and advertised URLs.
func (c *Config) derive() {
	if !c.Explicit("data-dir") || c.Storage.DataDir == "" {
		c.Storage.DataDir = c.Name + ".etcd"
	}
	if !c.Explicit("initial-advertise-peer-urls") && c.Explicit("listen-peer-urls") && !c.foundsWithDefault() {
		c.Advertise.PeerURLs = c.reachable(c.Listen.PeerURLs, "initial-advertise-peer-urls")
	}
	if !c.Explicit("advertise-client-urls") && c.Explicit("listen-client-urls") {
		// A wildcard is left empty here, which validation reports: clients cannot connect to it.
		c.Advertise.ClientURLs = nil
		if !slices.ContainsFunc(c.Listen.ClientURLs, URL.wildcard) {
			c.Advertise.ClientURLs = slices.Clone(c.Listen.ClientURLs)
		}
	}
	if c.foundsOrJoins() {
		if memberIndex(c.Bootstrap.InitialCluster, c.Name) < 0 {
			c.Bootstrap.InitialCluster, c.Bootstrap.ClusterState = nil, ClusterExisting
		}
		return
	}
	if len(c.Bootstrap.Join) > 0 {
		// A member that joins has no list of members, and bootstraps nothing.
		if !c.Explicit("initial-cluster") {
			c.Bootstrap.InitialCluster = nil
		}
		if !c.Explicit("initial-cluster-state") {
			c.Bootstrap.ClusterState = ClusterExisting
		}
		return
	}
	if !c.Explicit("initial-cluster") || len(c.Bootstrap.InitialCluster) == 0 {
		c.Bootstrap.InitialCluster = []InitialMember{{Name: c.Name, PeerURLs: slices.Clone(c.Advertise.PeerURLs)}}
	}
	if c.Bootstrap.ClusterState == "" {
		c.Bootstrap.ClusterState = ClusterNew
	}
}

// foundsWithDefault tells whether initial-cluster names this member by the default peer URL, which etcd advertises
// whatever it listens on.
func (c *Config) foundsWithDefault() bool {
	at := memberIndex(c.Bootstrap.InitialCluster, c.Name)
	return c.Explicit("initial-cluster") && at >= 0 && slices.Equal(c.Bootstrap.InitialCluster[at].PeerURLs,
		c.Advertise.PeerURLs)
}

// reachable turns URLs that are listened on into URLs to advertise; a wildcard becomes localhost, which only serves
// a cluster of one machine.
func (c *Config) reachable(listen []URL, flag string) []URL {
	out := slices.Clone(listen)
	for i, u := range out {
		if u.wildcard() {
			out[i].Address = "localhost:" + u.port()
			c.warn("this member advertises %s, which other machines cannot reach; set --%s", strconv.Quote(
				out[i].String()), flag)
		}
	}
	return out
}
