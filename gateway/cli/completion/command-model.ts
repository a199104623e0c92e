/** The command tree as completion needs it, read from commander so that nothing is written twice. */
import type { Argument, Command, Option } from 'commander';

export interface Word {
  readonly text: string;
  readonly description: string;
}

/** What may follow: a file name, one of a few words, or something only the user knows. */
export type Value =
  | { readonly kind: 'file' }
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'free' };

export interface OptionModel {
  /** `-h`, `--help` */
  readonly names: readonly string[];
  readonly description: string;
  /** null = a switch without value. */
  readonly value: Value | null;
}

export interface CommandModel {
  /** `` for the program, then `/policy`, `/policy/check`. */
  readonly path: string;
  readonly subcommands: readonly Word[];
  readonly options: readonly OptionModel[];
  /** Of its arguments; the first that says something. */
  readonly argument: Value | null;
}

/** Every command of the tree, parents first. */
export function commandModels(program: Command, path = ''): readonly CommandModel[] {
  const help = program.createHelp();
  const subcommands = help.visibleCommands(program);
  const model: CommandModel = {
    path,
    subcommands: subcommands.map((command) => ({
      text: command.name(),
      description: firstLine(help.subcommandDescription(command)),
    })),
    options: help.visibleOptions(program).map(optionModel),
    argument: program.registeredArguments.map(argumentValue).find((value) => value.kind !== 'free') ?? null,
  };
  const below = program.commands.flatMap((command) => commandModels(command, `${path}/${command.name()}`));
  return [model, ...below];
}

function optionModel(option: Option): OptionModel {
  const names = [option.short, option.long].filter((name) => name !== undefined && name !== null);
  const takesValue = option.required || option.optional;
  const value = option.argChoices === undefined ? valueNamed(option.flags) : words(option.argChoices);
  return { names, description: firstLine(option.description), value: takesValue ? value : null };
}

function argumentValue(argument: Argument): Value {
  return argument.argChoices === undefined ? valueNamed(argument.name()) : words(argument.argChoices);
}

function words(choices: readonly string[]): Value {
  return { kind: 'words', words: choices };
}

/** Places are called `<file>`, `<files…>` or `<dir>` throughout; that is how they are known. */
function valueNamed(text: string): Value {
  return /\b(files?|dir)\b/i.test(text) ? { kind: 'file' } : { kind: 'free' };
}

function firstLine(text: string): string {
  return text.split('\n', 1).join('');
}
