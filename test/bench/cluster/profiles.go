package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/pprof/profile"
)

// Profiles takes a CPU profile of every member, all at the same time. The members need the flag --enable-pprof.
func (c *Cluster) Profiles(ctx context.Context, length time.Duration) ([]*profile.Profile, error) {
	profiles, failures := make([]*profile.Profile, len(c.Members)), make([]error, len(c.Members))
	var group sync.WaitGroup
	for i, m := range c.Members {
		group.Go(func() { profiles[i], failures[i] = m.profile(ctx, length) })
	}
	group.Wait()
	return profiles, errors.Join(failures...)
}

func (m *Member) profile(ctx context.Context, length time.Duration) (*profile.Profile, error) {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", m.ClientAddr, int(length/time.Second))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("profile of %s: %s", m.Name, answer.Status)
	}
	return profile.Parse(answer.Body)
}
