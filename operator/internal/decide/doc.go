// Package decide says what the operator does next: one action for what is observed. It is pure, so that what its tests try
// is what runs: it knows no Kubernetes, no clock and no network, and keeps nothing between two calls.
//
// The operator adds and removes no voter. It makes claims and pods, and asks the cluster for jobs, which the cluster owns,
// resumes and refuses. The laws of the actions:
//   - No pod of a voter that works is deleted while fewer than a quorum of the others work; with one or two voters, unless
//     all others work.
//   - A member has one claim and at most one pod; a name that was used is not used again.
//   - A pod may found a cluster only while no cluster of that name was founded.
//   - A claim is deleted only when its member was removed by a job, never when it was left out by a recovery, whoever ran that.
//   - No member is stopped or noted as removed, and no claim deleted, by one word about the cluster while another one of equal
//     standing is of another leader or other members; nothing is for a removal while a member serves that is not named.
//   - No pod starts for a member that was removed, or that a recovery left out, as far as claims tell; and no pod of the latter
//     is stopped on a claim that goes with it.
//   - A consent to a loss counts for the loss for which it was given: not once a quorum may have worked, and not twice.
//   - No voter that is lost is stopped for a recovery before its command was started: one that comes back ends it.
//   - Once a command may have run on a survivor's claim no other member starts before the survivor has told what the command
//     did, and the survivor does not start beside a leader that answered first.
//   - No pod of a voter is stopped on a claim that goes with it while no leader answers, but for a recovery whose consent is
//     to a loss without comparing; the best survivor's not even then.
//   - While the cluster is paused no pod or claim of a member is made, changed or deleted, the cluster is asked for nothing,
//     and no recovery begins or goes on but by a command that was started.
//
// They hold whatever the status says: it may be wiped, or an older one.
//
// Every action may be repeated, and the operator may die between any two.
package decide
