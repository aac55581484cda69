// Package check holds the laws that a simulated cluster must keep: a file for most properties.
//
// A Suite is called with the actions of the members, as they happen, and reports the first violations; it never asks a member,
// so that a checker cannot be fooled by the code that it checks. The reference model (model.go) is a second, simple
// implementation of the store, fed with the committed log.
//
//	property              source                                    file
//	election-safety       Raft paper, 5.2                           election.go
//	log-matching          Raft paper, 5.3                           logs.go
//	leader-completeness   Raft paper, 5.4                           completeness.go
//	commit-rule           Raft paper, 5.4.2 and figure 8            commit.go
//	durable-before-ack    Raft paper, figure 2; docs/fast-path.md, 1  durable.go
//	state-machine         Raft paper, 5.4.3 (equal states)          machine.go, model.go
//	chain                 ADR 0019 (equal history)                  chain.go
//	revisions             docs/fast-path.md, L2                     revisions.go
//	fast-path             docs/fast-path.md, L1 and L5              fastpath.go
//	primary-order         Zab (DSN 2011), 4.1; docs/membership.md    primary.go (realtime.go for changes)
//	promised-order        docs/fast-path.md, "Accepting"            promises.go
//	recovered             docs/fast-path.md, "After an election"    promises.go
//	applied-once          RIFL; docs/fast-path.md, L1               once.go
//	acknowledged          docs/fast-path.md, L1                     acknowledged.go
//	real-time-order       docs/fast-path.md, L3 and L6              realtime.go
//	linearizable          Herlihy and Wing; Porcupine               linearizable.go
//	watch                 etcd API guarantees; docs/fast-path.md, L4  watches.go
//	lease-early           etcd lease contract                       leases.go
//	lease-renewing        package expiry (its clock)                package sim, host.go
//	configuration         Raft thesis, 4.1 and 4.3;                 config.go (what is in force), succession.go
//	                      membership.md                             (what may follow), removal.go (what is stored)
//	settled               ADR 0009 (settled before told)            removal.go
//	counted, founding     ADR 0020 (who may vote)                   counted.go
//	session               docs/native-client.md (whose session)     package workload, natives.go
//	client-lost           docs/native-client.md (where it connects)  package sim, clients.go
//	client-answer         package clients/streams, invariant 1      package sim, calm.go; package workload, writer.go
//	client-silent         docs/native-client.md (sessions that end)  package sim, silent.go
//	job                   docs/membership.md, jobs                  jobs.go
//	recovery              ADR 0012 (what is kept)                   held.go; package sim, recover.go (who serves)
//	address               ADR 0017, ADR 0058 (where members are)    package sim, addresses.go, moves.go
//	superseded            ADR 0012                                  package sim, recover.go
//	permission            ADR 0025 (users)                          package permits; machine.go
//	author, moment        ADR 0081 (by whom and when)               past.go
//	quota                 ADR 0084 (exact quotas)                   quotas.go; package sim, limits.go (recounts)
//	audit                 ADR 0082 (policy and heads)               audits.go
//	soak                  package raising, invariant 3              soaks.go; package sim, verdicts.go
//	level                 ADR 0030 (it becomes active)              package sim, levels.go
//	downgrade             ADR 0075, 6 (it ends)                     package sim, downgrades.go
//	backup                ADR 0086 (the row; restores)              backups.go; package sim, restores.go
//	sent-once             ADR 0048                                  sentonce.go
//	offer-wait            package offers, invariant 2               offers.go
//	offers-resume         docs/fast-path.md, "When several members  package sim, resume.go
//	                      are busy"
//
// Everything here belongs to the one goroutine of the simulator.
package check
