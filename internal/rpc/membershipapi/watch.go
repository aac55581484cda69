package membershipapi

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

const (
	defaultWatchInterval = 500 * time.Millisecond
	minWatchInterval     = 100 * time.Millisecond
)

// Watch streams what changes. Configurations, leaders and jobs are told at once, how far members are not more often than
// the caller wants. A caller that reads slowly misses states between, and never the latest.
func (m *Service) Watch(
	r *quoratepb.WatchRequest, stream grpc.ServerStreamingServer[quoratepb.Event],
) error {
	interval := time.Duration(r.GetIntervalMs()) * time.Millisecond
	if interval == 0 {
		interval = defaultWatchInterval
	}
	interval = max(interval, minWatchInterval)
	defer m.poller.join(interval)()
	pause := time.NewTimer(interval)
	defer pause.Stop()
	paused := false
	var sent *state
	for {
		now, changed := m.poller.look()
		events := eventsBetween(sent, now)
		if len(events) > 0 && (paused || events[0].Kind != quoratepb.Event_KIND_PROGRESS) {
			for _, event := range events {
				if err := stream.Send(event); err != nil {
					return err
				}
			}
			sent, paused = now, false
			pause.Reset(interval)
		}
		select {
		case <-changed:
		case <-pause.C:
			paused = true
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// eventsBetween gives the events from a state that was seen, or none, to a later one. Progress comes alone.
func eventsBetween(seen, now *state) []*quoratepb.Event {
	if now == nil || now == seen {
		return nil
	}
	event := func(kind quoratepb.Event_Kind, jobs []*quoratepb.Job) *quoratepb.Event {
		return &quoratepb.Event{Kind: kind, Cluster: now.cluster, Jobs: jobs}
	}
	if seen == nil {
		return []*quoratepb.Event{event(quoratepb.Event_KIND_STATE, now.jobs)}
	}
	var events []*quoratepb.Event
	was, is := seen.cluster, now.cluster
	if !proto.Equal(was.Config, is.Config) || was.Settled != is.Settled || was.Joint != is.Joint {
		events = append(events, event(quoratepb.Event_KIND_CONFIG, nil))
	}
	if was.Leader != is.Leader {
		events = append(events, event(quoratepb.Event_KIND_LEADER, nil))
	}
	if jobs := changedJobs(seen.jobs, now.jobs); len(jobs) > 0 {
		events = append(events, event(quoratepb.Event_KIND_JOB, jobs))
	}
	if len(events) == 0 && !proto.Equal(seen.steady, now.steady) {
		events = append(events, event(quoratepb.Event_KIND_PROGRESS, nil))
	}
	return events
}

// changedJobs returns the jobs that are not as they were.
func changedJobs(were, are []*quoratepb.Job) []*quoratepb.Job {
	before := make(map[uint64]*quoratepb.Job, len(were))
	for _, job := range were {
		before[job.Id] = job
	}
	var changed []*quoratepb.Job
	for _, job := range are {
		if !proto.Equal(before[job.Id], job) {
			changed = append(changed, job)
		}
	}
	return changed
}
