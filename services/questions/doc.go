// Package questions declares what the platform's services ask each other over NATS: for each question its name, its
// request, its answer and the kinds of error that may come instead. Asker and answerer both import the declaration, and
// neither imports the other.
//
// A question's JSON form is a format: services of two versions meet on it while an upgrade runs. A member may be added
// if its absence means what was so before; none is renamed or removed. testdata has an example of each request and
// answer.
//
// A declaration says what the asker does when nobody answers.
package questions
