package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
)

// plan is the shape of the cluster, as the directory remembers it.
type plan struct {
	Members  int `json:"members"`
	BasePort int `json:"base_port"`

	dir string
}

// seat is the place of one member.
type seat struct {
	name                 string
	clientPort, peerPort int
	dataDir, log         string
}

func (s seat) endpoint() string { return "127.0.0.1:" + strconv.Itoa(s.clientPort) }
func (s seat) peerURL() string  { return "http://127.0.0.1:" + strconv.Itoa(s.peerPort) }

func (p plan) seats() []seat {
	var out []seat
	for i := range p.Members {
		name := "m" + strconv.Itoa(i+1)
		client := p.BasePort + i*portStep
		out = append(out, seat{name, client, client + 1, filepath.Join(p.dir, name), filepath.Join(p.dir, name+".log")})
	}
	return out
}

// flags are the server flags of one member.
func (p plan) flags(s seat) []string {
	var cluster []string
	for _, other := range p.seats() {
		cluster = append(cluster, other.name+"="+other.peerURL())
	}
	return []string{
		"--name=" + s.name,
		"--data-dir=" + s.dataDir,
		"--listen-client-urls=http://" + s.endpoint(),
		"--advertise-client-urls=http://" + s.endpoint(),
		"--listen-peer-urls=" + s.peerURL(),
		"--initial-advertise-peer-urls=" + s.peerURL(),
		"--initial-cluster=" + strings.Join(cluster, ","),
		"--initial-cluster-token=quorate-dev",
	}
}

// openPlan decides the shape: what the directory remembers, which must not contradict what was asked for, else what
// was asked for. The directory exists afterwards and is not yet written to.
func openPlan(dir string, members, basePort int) (plan, error) {
	if members < 0 || members > maxMembers {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("--members %d: choose 1 to %d", members, maxMembers)}
	}
	if basePort < 0 || basePort > 65535-maxMembers*portStep {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("--base-port %d: choose 1 to %d", basePort,
			65535-maxMembers*portStep)}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return plan{}, fmt.Errorf("create --dir %s: %w", dir, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return newPlan(dir, members, basePort)
	}
	if err != nil {
		return plan{}, fmt.Errorf("read the shape of the cluster: %w", err)
	}
	p := plan{dir: dir}
	if err := json.Unmarshal(raw, &p); err != nil || p.Members < 1 || p.Members > maxMembers || p.BasePort < 1 {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("%s is damaged; delete %s to begin anew",
			filepath.Join(dir, recordName), dir)}
	}
	if members != 0 && members != p.Members {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("%s holds a cluster of %d: leave out --members, choose another "+
			"--dir, or delete %s to begin anew", dir, p.Members, dir)}
	}
	if basePort != 0 && basePort != p.BasePort {
		return plan{}, &refusal{ErrPlan, fmt.Sprintf("the members in %s know each other by the ports from %d on: leave "+
			"out --base-port, choose another --dir, or delete %s to begin anew", dir, p.BasePort, dir)}
	}
	return p, nil
}

func newPlan(dir string, members, basePort int) (plan, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return plan{}, fmt.Errorf("read --dir %s: %w", dir, err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			return plan{}, &refusal{ErrPlan, fmt.Sprintf("--dir %s holds other files (%s): choose an empty or a new "+
				"directory", dir, e.Name())}
		}
	}
	p := plan{Members: members, BasePort: basePort, dir: dir}
	if p.Members == 0 {
		p.Members = defaultMembers
	}
	if p.BasePort == 0 {
		p.BasePort = defaultBasePort
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
	if err := os.WriteFile(path+".new", append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("record the shape of the cluster: %w", err)
	}
	return os.Rename(path+".new", path)
}
