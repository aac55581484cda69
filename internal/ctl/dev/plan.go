package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	defaultMembers  = 3
	maxMembers      = 7
	defaultBasePort = 2379
	portStep        = 10
	recordName      = "dev.json"
	lockName        = "lock"
	backupsName     = "backups"
)

// plan is the shape of the cluster, as the directory remembers it.
type plan struct {
	Members  int `json:"members"`
	BasePort int `json:"base_port"`
	// Names are those of the members, if they are not m1, m2 and so on.
	Names []string `json:"names,omitempty"`
	Geo   string   `json:"geo,omitempty"` // as --geo; empty: all on one machine

	dir     string
	geo     geo
	console bool // the program has one
}

// seat is the place of one member.
type seat struct {
	name                              string
	clientPort, peerPort, consolePort int
	dataDir, log                      string
}

func (s seat) endpoint() string { return "127.0.0.1:" + strconv.Itoa(s.clientPort) }
func (s seat) peerURL() string  { return "http://127.0.0.1:" + strconv.Itoa(s.peerPort) }

// consoleURL is where browsers find the console.
func (s seat) consoleURL() string { return "http://127.0.0.1:" + strconv.Itoa(s.consolePort) }

func (p plan) seats() []seat {
	var out []seat
	for i := range p.Members {
		name := "m" + strconv.Itoa(i+1)
		if len(p.Names) > 0 {
			name = p.Names[i]
		}
		client := p.BasePort + i*portStep
		out = append(out, seat{name: name, clientPort: client, peerPort: client + 1, consolePort: client + 2,
			dataDir: filepath.Join(p.dir, name), log: filepath.Join(p.dir, name+".log")})
	}
	return out
}

// flags are the server flags of one member.
func (p plan) flags(s seat) []string {
	var cluster []string
	seats, self := p.seats(), 0
	for i, other := range seats {
		cluster = append(cluster, other.name+"="+other.peerURL())
		if other.name == s.name {
			self = i
		}
	}
	flags := []string{
		"--name=" + s.name,
		"--data-dir=" + s.dataDir,
		"--listen-client-urls=http://" + s.endpoint(),
		"--advertise-client-urls=http://" + s.endpoint(),
		"--listen-peer-urls=" + s.peerURL(),
		"--initial-advertise-peer-urls=" + s.peerURL(),
		"--initial-cluster=" + strings.Join(cluster, ","),
		"--initial-cluster-token=quorate-dev",
		"--level-policy=now",
		"--backup-places=" + p.backups(),
	}
	if p.console {
		flags = append(flags, "--listen-console-urls="+s.consoleURL(), "--console=admin")
	}
	return append(flags, p.geo.flags(seats, self)...)
}

// backups is the place to which the cluster may ship a continuous backup.
func (p plan) backups() string {
	dir := filepath.Join(p.dir, backupsName)
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}

// openPlan decides the shape: what the directory remembers, which must not contradict what was asked for, else what
// was asked for; only how far the members are apart may change from start to start. The directory exists afterwards and
// is not yet written to.
func openPlan(o Options) (plan, error) {
	if o.Members < 0 || o.Members > maxMembers {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("--members %d: choose 1 to %d", o.Members, maxMembers)}
	}
	if o.BasePort < 0 || o.BasePort > 65535-maxMembers*portStep {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("--base-port %d: choose 1 to %d", o.BasePort,
			65535-maxMembers*portStep)}
	}
	asked, err := parseGeo(o.Geo)
	if err != nil {
		return plan{}, err
	}
	if asked.regions && o.Members > len(sites) {
		return plan{}, tooManyForSites(o.Members)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return plan{}, fmt.Errorf("create --dir %s: %w", o.Dir, err)
	}
	raw, err := os.ReadFile(filepath.Join(o.Dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return newPlan(o, asked)
	}
	if err != nil {
		return plan{}, fmt.Errorf("read the shape of the cluster: %w", err)
	}
	p, err := readPlan(o.Dir, raw)
	if err != nil {
		return plan{}, err
	}
	if o.Members != 0 && o.Members != p.Members {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("%s holds a cluster of %d: leave out --members, choose another "+
			"--dir, or delete %s to begin anew", o.Dir, p.Members, o.Dir)}
	}
	if o.BasePort != 0 && o.BasePort != p.BasePort {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("the members in %s know each other by the ports from %d on: leave "+
			"out --base-port, choose another --dir, or delete %s to begin anew", o.Dir, p.BasePort, o.Dir)}
	}
	if o.Geo != "" {
		p.place(o.Geo, asked)
	}
	if p.geo.regions && p.Members > len(sites) {
		return plan{}, tooManyForSites(p.Members)
	}
	return p, nil
}

func tooManyForSites(members int) error {
	return &refusal{ErrPlan, fmt.Sprintf("--geo %s has %d sites (%s), which is too few for %d members: give one round trip "+
		"for all of them, such as --geo 50ms", geoRegions, len(sites), strings.Join(sites, ", "), members)}
}

// readPlan reads what a directory remembers.
func readPlan(dir string, raw []byte) (plan, error) {
	p := plan{dir: dir}
	err := json.Unmarshal(raw, &p)
	if err == nil {
		p.geo, err = parseGeo(p.Geo)
	}
	if err != nil || p.Members < 1 || p.Members > maxMembers || p.BasePort < 1 || p.Names != nil && len(p.Names) != p.Members {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("%s is damaged; delete %s to begin anew",
			filepath.Join(dir, recordName), dir)}
	}
	return p, nil
}

// place puts the members as far apart as was asked.
func (p *plan) place(text string, g geo) {
	if p.Geo, p.geo = "", g; g.isFar() {
		p.Geo = text
	}
}

func newPlan(o Options, asked geo) (plan, error) {
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return plan{}, fmt.Errorf("read --dir %s: %w", o.Dir, err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			return plan{}, &refusal{ErrPlan, fmt.Sprintf("--dir %s holds other files (%s): choose an empty or a new "+
				"directory", o.Dir, e.Name())}
		}
	}
	p := plan{Members: o.Members, BasePort: o.BasePort, dir: o.Dir}
	p.place(o.Geo, asked)
	switch {
	case p.Members == 0 && asked.regions:
		p.Members = len(sites)
	case p.Members == 0:
		p.Members = defaultMembers
	}
	if p.BasePort == 0 {
		p.BasePort = defaultBasePort
	}
	if asked.regions {
		p.Names = sites[:p.Members]
	}
	return p, nil
}

// remember records the shape before the first member starts, so that no data can exist without it.
func (p plan) remember() error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	path := filepath.Join(p.dir, recordName)
	if err := os.MkdirAll(filepath.Join(p.dir, backupsName), 0o700); err != nil {
		return fmt.Errorf("create the directory for backups: %w", err)
	}
	if err := os.WriteFile(path+".new", append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("record the shape of the cluster: %w", err)
	}
	return os.Rename(path+".new", path)
}
