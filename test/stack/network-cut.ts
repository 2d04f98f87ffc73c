/** Drops what two addresses send each other, in the network namespace of one of them: nobody is told. */
import { execFileSync } from 'node:child_process';

/** `inside`: a process in the namespace. `outside`: the address that is not heard any more. */
export function cutOff(inside: number, outside: string): void {
  rules('-I', inside, outside);
}

export function healed(inside: number, outside: string): void {
  rules('-D', inside, outside);
}

function rules(verb: '-I' | '-D', inside: number, outside: string): void {
  const ways: readonly (readonly string[])[] = [
    ['INPUT', '-s'],
    ['OUTPUT', '-d'],
  ];
  for (const [chain = '', side = ''] of ways) {
    const rule = ['-w', verb, chain, side, outside, '-j', 'DROP'];
    execFileSync('nsenter', ['-t', String(inside), '-n', 'iptables', ...rule]);
  }
}
