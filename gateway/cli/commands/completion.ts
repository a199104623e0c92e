/** `completion`: a script for the shell, made from the commands themselves. */
import { Argument, type Command } from 'commander';
import { type Cli, GOOD } from '../cli.ts';
import { bashCompletion } from '../completion/bash.ts';
import { commandModels } from '../completion/command-model.ts';
import { fishCompletion } from '../completion/fish.ts';
import { zshCompletion } from '../completion/zsh.ts';
import { withExamples } from '../configuration.ts';

const shells = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export function addCompletion(program: Command, cli: Cli): void {
  const command = program
    .command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .action(
      // commander takes the three words of `choices` only.
      cli.action((shell: keyof typeof shells) => {
        cli.raw(shells[shell](program.name(), commandModels(program)));
        return GOOD;
      }),
    );
  withExamples(
    command,
    'source <(sallyport completion bash)',
    'sallyport completion zsh > ~/.zfunc/_sallyport',
    'sallyport completion fish > ~/.config/fish/completions/sallyport.fish',
  );
}
