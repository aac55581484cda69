package ctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/survey"
)

func newStatus(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "status",
		Short: "Show all members of the cluster; status 1 if one is down or cut off, or an alarm stands",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return showStatus(cmd.Context(), c) },
	})
}

func showStatus(ctx context.Context, c *command.Connection) error {
	client, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	reachable, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	cluster, seats, err := survey.Seats(reachable, client)
	if err != nil {
		return c.Explain(ctx, err, client.Endpoints())
	}
	members := survey.Listed(survey.Ask(bounded, client, seats))
	if c.JSON() {
		err = command.PrintJSON(c.Streams.Out, statusLines(members))
	} else {
		printStatus(ctx, c, members)
	}
	divided := divided(members, cluster, func(earlier, later survey.Member) bool { return apart(ctx, c, earlier, later) })
	for _, text := range divided {
		command.Say(c.Streams.Err, text)
	}
	_, led := survey.LeaderOf(members)
	if !led || countDown(members) > 0 || len(survey.CutOff(members)) > 0 || len(divided) > 0 || survey.Alarmed(members) {
		return errors.Join(err, command.ErrQuiet)
	}
	return err
}

func countDown(members []survey.Member) int {
	n := 0
	for _, m := range members {
		if m.Role == survey.Down {
			n++
		}
	}
	return n
}

func printStatus(ctx context.Context, c *command.Connection, members []survey.Member) {
	t := &command.Table{}
	t.Add("MEMBER", "ENDPOINT", "ID", "ROLE", "TERM", "INDEX", "APPLIED", "LAG", "REVISION", "SIZE", "VERSION")
	var notes, dataless []string
	for _, m := range members {
		if m.Role == survey.Down {
			t.Add(m.Name, m.Endpoint, "", string(m.Role))
			why := whyDown(ctx, c, m)
			notes = append(notes, m.Name+" is down: "+why)
			if isDataless(why) {
				dataless = append(dataless, m.Name)
			}
			continue
		}
		t.Add(m.Name, m.Endpoint, command.HexID(m.ID), string(m.Role), command.Number(m.Term), command.Number(m.Index),
			command.Number(m.Applied), command.Number(m.Lag), strconv.FormatInt(m.Revision, 10), progress.Size(m.Size),
			m.Version)
	}
	t.Print(c.Streams.Out)
	notes = append(notes, survey.Notes(members)...)
	if _, led := survey.LeaderOf(members); !led {
		notes = append(notes, noLeader(ctx, c, members, dataless))
	}
	for _, m := range survey.CutOff(members) {
		notes = append(notes, cutOff(m, members))
	}
	for _, note := range notes {
		command.Say(c.Streams.Out, note)
	}
}

// cutOff says what to do about a member that knows no leader though another one leads. Where the list has it is not said:
// that may be its own, which is old.
func cutOff(m survey.Member, members []survey.Member) string {
	leader, _ := survey.LeaderOf(members)
	return fmt.Sprintf("%s answers clients and knows no leader, so it serves neither writes nor linearizable reads; %s "+
		"leads. If %s was down while others moved, it asks those that it finds where the leader is: wait "+
		"for half a minute. If it knows no leader then, its log says with `peer unreachable` and `peer "+
		"refused` which members it does not reach. Repair the network between, or, if they moved (`quorate "+
		"member list --endpoints %s` says where to), stop only %s, tell it with `quorate set-address` "+
		"where they are, and start it again. Leave the members alone that follow %s",
		m.Name, leader.Name, m.Name, leader.Endpoint, m.Name, leader.Name)
}

// noLeader says why nothing can be written. Members that all serve clients may still not reach each other.
func noLeader(ctx context.Context, c *command.Connection, members []survey.Member, dataless []string) string {
	refusing, down := refusingPeers(ctx, members)
	if words := shortage(known(ctx, c, members), members, dataless); words != "" {
		return words
	}
	if up := len(members) - countDown(members); up <= len(members)/2 {
		words := fmt.Sprintf("the cluster has no leader: nothing can be written until a majority of its %d members is up; "+
			"%d answer", len(members), up)
		if len(refusing)+len(down) == 0 {
			words += ", and every peer URL accepts connections: see the logs of those that do not answer"
		}
		return words
	}
	words := "the cluster has no leader although a majority answers clients: "
	if len(refusing)+len(down) == 0 {
		return words + "the members may not reach each other at their peer URLs; see `quorate member list` for these, and " +
			"the logs for `peer unreachable`"
	}
	return words + "nobody listens, as seen from here, at peer URL " + strings.Join(append(down, refusing...), ", ") +
		startThem(members, len(down) > 0, len(refusing) > 0) +
		". If members moved while others were down, see `quorate set-address --help`"
}

// startThem says what to do about members at whose peer URLs no process listens. That a connection is refused does not show
// that the URL is wrong: mostly the member does not run.
func startThem(members []survey.Member, down, refusing bool) (words string) {
	var names []string
	for _, m := range members {
		if m.Role == survey.Down {
			names = append(names, m.Name)
		}
	}
	if down {
		words = ". Start " + strings.Join(names, ", ") + " with its usual flags or, if it moved, with its new " +
			"--initial-advertise-peer-urls"
	}
	if refusing {
		words += ". A member that answers clients and listens elsewhere for members is to be started with that URL as " +
			"--initial-advertise-peer-urls"
	}
	return words
}

// refusingPeers names the peer URLs at which no process accepts connections from here: of members that answer clients, and of
// those that are down.
func refusingPeers(ctx context.Context, members []survey.Member) (refusing, down []string) {
	for _, m := range members {
		for _, text := range m.PeerURLs {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			address := u.Host
			if u.Port() == "" {
				address = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
			}
			if reason := command.Probe(ctx, address); reason != nil {
				word := text + " of " + m.Name + " (" + command.RootCause(reason) + ")"
				if m.Role == survey.Down {
					down = append(down, word)
				} else {
					refusing = append(refusing, word)
				}
			}
		}
	}
	return refusing, down
}

func whyDown(ctx context.Context, c *command.Connection, m survey.Member) string {
	if errors.Is(m.Err, survey.ErrNoEndpoint) {
		return "it was never started, or ended before it could tell its client URLs"
	}
	if why, _ := c.Diagnose(ctx, m.Endpoint); why != "" {
		return why
	}
	return "it accepts connections but does not answer"
}

type statusLine struct {
	Name     string   `json:"name"`
	Endpoint string   `json:"endpoint"`
	ID       string   `json:"id,omitempty"`
	Role     string   `json:"role"`
	Term     uint64   `json:"term"`
	Index    uint64   `json:"index"`
	Applied  uint64   `json:"applied"`
	Lag      uint64   `json:"lag"`
	Revision int64    `json:"revision"`
	Size     int64    `json:"size_bytes"`
	Version  string   `json:"version,omitempty"`
	Alarms   []string `json:"alarms,omitempty"`
	Err      string   `json:"error,omitempty"`
	Cluster  string   `json:"cluster_id,omitempty"`
}

func statusLines(members []survey.Member) []statusLine {
	var out []statusLine
	for _, m := range members {
		line := statusLine{m.Name, m.Endpoint, "", string(m.Role), m.Term, m.Index, m.Applied, m.Lag, m.Revision,
			m.Size, m.Version, m.Alarms, "", ""}
		if m.ID != 0 {
			line.ID, line.Cluster = command.HexID(m.ID), command.HexID(m.Cluster)
		}
		if m.Err != nil {
			line.Err = command.RootCause(m.Err)
		}
		out = append(out, line)
	}
	return out
}
