// A NestJS application over Transport.RMQ as people write it: a service on a durable queue with manual acks, and a listener
// that takes events by wildcard from a topic exchange.
import "reflect-metadata";
import { Controller, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import {
  Ctx, EventPattern, MessagePattern, Payload, RmqContext, RpcException, Transport,
  type MicroserviceOptions, type RmqOptions,
} from "@nestjs/microservices";
import { from, type Observable } from "rxjs";

export const seen = { orders: [] as string[], listened: [] as string[], unacked: [] as string[] };

const ack = (context: RmqContext) => context.getChannelRef().ack(context.getMessage());

@Controller()
class ShopController {
  @MessagePattern("sum")
  sum(@Payload() numbers: number[], @Ctx() context: RmqContext): number {
    ack(context);
    return numbers.reduce((sum, number) => sum + number, 0);
  }

  @MessagePattern({ cmd: "count" })
  count(@Payload() upTo: number, @Ctx() context: RmqContext): Observable<number> {
    ack(context);
    return from(Array.from({ length: upTo }, (_, number) => number));
  }

  @MessagePattern("refuse")
  refuse(@Payload() why: string, @Ctx() context: RmqContext): never {
    ack(context);
    throw new RpcException(why);
  }

  @EventPattern("order.created")
  created(@Payload() id: string, @Ctx() context: RmqContext) {
    seen.orders.push(id);
    ack(context);
  }

  @EventPattern("never.acked")
  neverAcked(@Payload() id: string, @Ctx() context: RmqContext) {
    seen.unacked.push(`${id} ${context.getMessage().fields.redelivered}`);
  }
}

@Controller()
class Listener {
  @EventPattern("parcel.*.sent")
  sent(@Payload() id: string) {
    seen.listened.push(`one ${id}`);
  }

  @EventPattern("refund.#")
  all(@Payload() id: string) {
    seen.listened.push(`all ${id}`);
  }
}

@Module({ controllers: [ShopController] })
class ShopModule {}

@Module({ controllers: [Listener] })
class ListenerModule {}

export function shopOptions(url: string): RmqOptions["options"] {
  return { urls: [url], queue: "shop", queueOptions: { durable: true }, socketOptions: { reconnectTimeInSeconds: 1 } as never };
}

export function parcelOptions(url: string): RmqOptions["options"] {
  return { urls: [url], queue: "parcels", wildcards: true, exchange: "parcels", exchangeType: "topic", queueOptions: { durable: false } };
}

async function serve(module: new () => object, options: RmqOptions["options"]) {
  const service = await NestFactory.createMicroservice<MicroserviceOptions>(module, { transport: Transport.RMQ, options, logger: ["error"] });
  await service.listen();
  return service;
}

export const startShop = (url: string) => serve(ShopModule, { ...shopOptions(url), noAck: false, prefetchCount: 5 });
export const startListener = (url: string) => serve(ListenerModule, { ...parcelOptions(url), noAck: true });
