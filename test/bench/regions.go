package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/distance"
)

// siteTrips are the round trips between the sites in milliseconds, as those of `quorate dev --geo regions`.
var siteTrips = [5][5]int{
	{0, 65, 68, 148, 114},
	{65, 0, 121, 97, 175},
	{68, 121, 0, 202, 178},
	{148, 97, 202, 0, 258},
	{114, 175, 178, 258, 0},
}

const (
	leadingSite = 2 // eu
	siteSettles = 3 * time.Second
)

// measureRegions puts five members into five regions, makes eu lead, and has clients in each region ask the member there.
func (f farLoad) measureRegions(ctx context.Context, s cluster.Server, dir string) (err error) {
	var proxies []net.Listener
	defer func() {
		for _, l := range proxies {
			_ = l.Close()
		}
	}()
	c, _, err := cluster.StartBehind(ctx, s, dir, len(sites), func(address string) (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		to := len(proxies)
		proxies = append(proxies, l)
		go distance.PassOn(l, address, func(from net.Addr) (time.Duration, error) { return wayTo(to, from) })
		return l.Addr().String(), nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	if err := leadFrom(ctx, c, leadingSite); err != nil {
		return err
	}
	cluster.Pause(ctx, siteSettles) // members measure how far they are from each other
	for i, m := range c.Members {
		plain, err := cluster.Connect(m.ClientAddr)
		if err != nil {
			return err
		}
		nothing := func() string { return "" }
		err = f.row(ctx, "put, in "+sites[i], []*clientv3.Client{plain}, putFar, nothing)
		if f.reads && err == nil {
			err = f.row(ctx, "get, in "+sites[i], []*clientv3.Client{plain}, getFar, nothing)
		}
		if err = errors.Join(err, plain.Close()); err != nil {
			return err
		}
	}
	leader, err := c.Leader(ctx)
	if err == nil && leader != c.Members[leadingSite] {
		err = fmt.Errorf("%s leads in the end, not the member in %s", leader.Name, sites[leadingSite])
	}
	return err
}

// wayTo is how long something takes to a site from the site of the member that made a connection.
func wayTo(to int, from net.Addr) (time.Duration, error) {
	line, err := distance.Owner(from)
	if err != nil {
		return 0, err
	}
	for _, argument := range line {
		if name, ok := strings.CutPrefix(argument, "--name=m"); ok {
			number, err := strconv.Atoi(name)
			if err != nil || number < 1 || number > len(sites) {
				return 0, fmt.Errorf("member %q has no site", name)
			}
			return time.Duration(siteTrips[number-1][to]) * time.Millisecond / 2, nil
		}
	}
	return 0, fmt.Errorf("%q is no member", line)
}

// leadFrom moves leadership to a member.
func leadFrom(ctx context.Context, c *cluster.Cluster, wanted int) error {
	for ctx.Err() == nil {
		leader, err := c.Leader(ctx)
		if err != nil {
			return err
		}
		if leader == c.Members[wanted] {
			return nil
		}
		client, err := cluster.Connect(leader.ClientAddr)
		if err != nil {
			return err
		}
		_, refused := client.MoveLeader(ctx, c.Members[wanted].ID)
		if err := client.Close(); err != nil {
			return err
		}
		if refused != nil {
			cluster.Pause(ctx, time.Second) // it may lead no more, or the other one is not heard yet
		}
	}
	return ctx.Err()
}
