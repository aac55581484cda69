package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

// sites are those of `quorate dev --geo regions`, in the order of its ports.
var sites = []string{"us-east", "us-west", "eu", "ap", "sa"}

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

// betweenSites puts a member into each site.
func betweenSites() cluster.Conditions {
	return cluster.Conditions{Members: len(sites), Way: func(from, to int) time.Duration {
		return time.Duration(siteTrips[from][to]) * time.Millisecond / 2
	}}
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

// leadsStill fails if the leader is not the one that was to lead.
func leadsStill(ctx context.Context, c *cluster.Cluster, wanted int) error {
	leader, err := c.Leader(ctx)
	if err == nil && leader != c.Members[wanted] {
		err = fmt.Errorf("%s leads in the end, not the member in %s", leader.Name, sites[wanted])
	}
	return err
}
